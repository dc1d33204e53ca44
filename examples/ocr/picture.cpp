#include "picture.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <stdexcept>

namespace {

// A number of the header; what stands between a # and the end of its line is a comment.
int64_t next_number(std::istream &in) {
    for (int c = in.peek(); c == '#' || std::isspace(c); c = in.peek())
        if (in.get() == '#')
            while (in && in.get() != '\n') {}
    int64_t number = -1;
    in >> number;
    return number;
}

// Between which two elements a position lies, and how much of each it is, in parts of 2048.
struct Mix {
    int64_t first, second;
    int32_t weights[2];
};

std::vector<Mix> mixes(int64_t from, int64_t to) {
    std::vector<Mix> all;
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    for (int64_t i = 0; i < to; i++) {
        const auto at = static_cast<float>((static_cast<double>(i) + 0.5) * scale - 0.5);
        const auto below = static_cast<int64_t>(std::floor(at));
        const float part = at - static_cast<float>(below);
        all.push_back({std::clamp<int64_t>(below, 0, from - 1),
                       std::clamp<int64_t>(below + 1, 0, from - 1),
                       {static_cast<int32_t>(std::lrint((1 - part) * 2048)), static_cast<int32_t>(std::lrint(part * 2048))}});
    }
    return all;
}

}  // namespace

Picture read_picture(const std::string &file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + file);
    char magic[2] = {};
    in.read(magic, 2);
    if (magic[0] != 'P' || (magic[1] != '5' && magic[1] != '6'))
        throw std::runtime_error(file +
                                 ": expected a PGM or PPM picture, which begins with P5 or P6; netpbm or ImageMagick make one of others");
    Picture picture;
    picture.channels = magic[1] == '6' ? 3 : 1;
    picture.columns = next_number(in), picture.rows = next_number(in);
    const int64_t shades = next_number(in), limit = int64_t{1} << 26;
    const bool fits = picture.columns > 0 && picture.rows > 0 && picture.columns <= limit && picture.rows <= limit &&
                      picture.columns * picture.rows <= limit / picture.channels;
    if (!in || !fits || shades != 255) throw std::runtime_error(file + ": expected columns, rows and 255 shades in its header");
    in.get();
    picture.values.resize(static_cast<size_t>(picture.rows * picture.columns * picture.channels));
    in.read(reinterpret_cast<char *>(picture.values.data()), static_cast<std::streamsize>(picture.values.size()));
    if (!in) throw std::runtime_error(file + " is cut short");
    return picture;
}

Picture resized(const Picture &p, int64_t rows, int64_t columns) {
    if (rows == p.rows && columns == p.columns) return p;
    Picture result{rows, columns, p.channels, std::vector<uint8_t>(static_cast<size_t>(rows * columns * p.channels))};
    const std::vector<Mix> down = mixes(p.rows, rows), across = mixes(p.columns, columns);
    auto in_row = [&](int64_t row, const Mix &m, int64_t channel) {
        auto value = [&](int64_t column) {
            return int32_t{p.values[static_cast<size_t>((row * p.columns + column) * p.channels + channel)]};
        };
        return value(m.first) * m.weights[0] + value(m.second) * m.weights[1];
    };
    size_t next = 0;
    for (const Mix &y : down)
        for (const Mix &x : across)
            for (int64_t c = 0; c < p.channels; c++) {
                const int32_t above = in_row(y.first, x, c) >> 4, below = in_row(y.second, x, c) >> 4;
                const int32_t sum = ((above * y.weights[0]) >> 16) + ((below * y.weights[1]) >> 16);
                result.values[next++] = static_cast<uint8_t>((sum + 2) >> 2);
            }
    return result;
}

Line line_of(const Picture &picture) {
    const double ratio = static_cast<double>(picture.columns) / static_cast<double>(picture.rows);
    const double widest = std::max(static_cast<double>(Line::least_columns) / Line::rows, ratio);
    Line line;
    line.columns = static_cast<int64_t>(Line::rows * widest);
    if (line.columns > 1 << 16) throw std::runtime_error("the picture is too wide for a line of text");
    const int64_t columns = std::min(line.columns, static_cast<int64_t>(std::ceil(Line::rows * ratio)));
    const Picture small = resized(picture, Line::rows, columns);
    line.values.resize(static_cast<size_t>(Line::rows * line.columns * Line::channels));
    for (int64_t r = 0; r < Line::rows; r++)
        for (int64_t c = 0; c < columns; c++)
            for (int64_t channel = 0; channel < Line::channels; channel++) {
                const int64_t taken = picture.channels == 1 ? 0 : Line::channels - 1 - channel;
                const float value = small.values[static_cast<size_t>((r * columns + c) * picture.channels + taken)];
                line.values[static_cast<size_t>((r * line.columns + c) * Line::channels + channel)] = (value / 255 - 0.5f) / 0.5f;
            }
    return line;
}

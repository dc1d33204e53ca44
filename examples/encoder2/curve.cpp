#include "curve.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

static constexpr double width = 620, height = 250, left = 40, right = 600, top = 20, bottom = 220;

static std::string text_of(const char *format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

// The file is the old one or the new one.
static void replace(const std::filesystem::path &file, const std::string &text) {
    const std::filesystem::path beside = file.string() + ".new";
    std::ofstream stream(beside, std::ios::binary);
    stream << text << std::flush;
    if (!stream) throw std::runtime_error("cannot write " + beside.string());
    stream.close();
    std::filesystem::rename(beside, file);
}

void write_csv(const std::filesystem::path &file, const std::vector<Number> &losses) {
    std::string text = "step,loss\n";
    for (size_t i = 0; i < losses.size(); i++)
        text += std::to_string(i + 1) + "," + text_of(sizeof(Number) == 8 ? "%.17g" : "%.9g", losses[i]) + "\n";
    replace(file, text);
}

static std::string line(const std::vector<Number> &values, double most, const char *style) {
    std::string points;
    const double steps = std::max<double>(1, static_cast<double>(values.size()) - 1);
    for (size_t i = 0; i < values.size(); i++)
        points += (i ? " " : "") + text_of("%.1f", left + (right - left) * static_cast<double>(i) / steps) + "," +
                  text_of("%.1f", bottom - (bottom - top) * values[i] / most);
    return "<polyline points=\"" + points + "\" fill=\"none\" " + style + "/>";
}

void write_svg(const std::filesystem::path &file, const std::vector<Number> &losses) {
    const double most = losses.empty() ? 1 : *std::max_element(losses.begin(), losses.end());
    const size_t window = std::max<size_t>(1, losses.size() / 20);
    std::vector<Number> smooth;
    for (size_t i = 0; i < losses.size(); i++) {
        const size_t first = i + 1 < window ? 0 : i + 1 - window;
        double sum = 0;
        for (size_t k = first; k <= i; k++) sum += losses[k];
        smooth.push_back(static_cast<Number>(sum / static_cast<double>(i + 1 - first)));
    }
    const auto words = [](double x, double y, const std::string &anchor, const std::string &said) {
        return "<text x=\"" + text_of("%.0f", x) + "\" y=\"" + text_of("%.0f", y) + "\" text-anchor=\"" + anchor + "\">" + said + "</text>";
    };
    replace(file, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + text_of("%.0f", width) + "\" height=\"" + text_of("%.0f", height) +
                      "\" font-family=\"sans-serif\" font-size=\"12\"><path d=\"M40 20V220H600\" fill=\"none\" stroke=\"#888\"/>" +
                      line(losses, most, "stroke=\"#9cf\"") + line(smooth, most, "stroke=\"#06c\" stroke-width=\"2\"") +
                      words(left - 4, top + 4, "end", text_of("%.2f", most)) + words(left - 4, bottom, "end", "0") +
                      words(left, height - 10, "start", "step 1") + words(right, height - 10, "end", std::to_string(losses.size())) +
                      words((left + right) / 2, 14, "middle", "loss, nats a byte") + "</svg>\n");
}

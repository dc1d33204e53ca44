#include "text.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace fs = std::filesystem;

static std::vector<uint8_t> bytes_of(const fs::path &file) {
    std::ifstream stream(file, std::ios::binary);
    if (!stream) throw std::runtime_error("cannot read " + file.string());
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

fs::path text_of_debian() {
    for (const char *folder : {"/usr/share/games/fortunes", "/usr/share/miscfiles", "/usr/share/common-licenses"})
        if (fs::is_directory(folder)) return folder;
    throw std::runtime_error("there is no text to learn from; install the package fortunes, or name a file or a folder with --text");
}

Text read_text(const fs::path &path) {
    std::vector<fs::path> files;
    if (fs::is_directory(path)) {
        for (const fs::directory_entry &entry : fs::directory_iterator(path))
            if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
        std::sort(files.begin(), files.end());
    } else {
        files.push_back(path);
    }
    Text text;
    text.hash = 0xcbf29ce484222325;
    for (const fs::path &file : files) {
        const std::vector<uint8_t> bytes = bytes_of(file);
        if (std::find(bytes.begin(), bytes.end(), 0) != bytes.end()) continue;  // an index of the texts, or a picture
        text.files.push_back(file.string());
        text.learnt.insert(text.learnt.end(), bytes.begin(), bytes.end());
    }
    for (const uint8_t byte : text.learnt) text.hash = (text.hash ^ byte) * 0x100000001b3;
    if (text.learnt.size() < size_t(1) << 16)
        throw std::runtime_error(path.string() + " has " + std::to_string(text.learnt.size()) + " bytes of text; expected at least 65536");
    const auto end = text.learnt.begin() + static_cast<std::ptrdiff_t>(text.learnt.size() / 10 * 9);
    text.held_out.assign(end, text.learnt.end());
    text.learnt.erase(end, text.learnt.end());
    return text;
}

uint64_t mixed(uint64_t counter) {
    uint64_t z = counter * 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

Batch batch_of(const std::vector<uint8_t> &text, int64_t texts, int64_t bytes, uint64_t seed, uint64_t step) {
    Batch batch;
    const uint64_t places = text.size() - static_cast<uint64_t>(bytes);
    for (int64_t b = 0; b < texts; b++) {
        const uint64_t start = mixed(mixed(mixed(seed) + step) + static_cast<uint64_t>(b)) % places;
        for (int64_t i = 0; i < bytes; i++) {
            batch.ids.push_back(text[start + static_cast<uint64_t>(i)]);
            batch.targets.push_back(text[start + static_cast<uint64_t>(i) + 1]);
        }
    }
    return batch;
}

// Writes GGUF files, byte by byte from the published layout, so that tests can break any of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::test {

inline std::string little_endian(uint64_t value, size_t bytes) {
    std::string made;
    for (size_t i = 0; i < bytes; i++) made += static_cast<char>(value >> (8 * i));
    return made;
}

inline std::string gguf_text(const std::string &text) { return little_endian(text.size(), 8) + text; }

struct GgufEntry {
    std::string name;
    uint32_t type = 0;
    std::vector<uint64_t> extents;  // innermost first, as files have them
    std::string bytes;
};

struct GgufParts {
    uint32_t version = 3;
    std::vector<std::string> values = {};  // whole: key, type and value
    std::vector<GgufEntry> tensors = {};
    uint64_t alignment = 32;
    // Where data lie, by tensor; empty: each behind the one before, aligned.
    std::vector<uint64_t> offsets = {};

    std::string text() const {
        std::string made = "GGUF" + little_endian(version, 4) + little_endian(tensors.size(), 8) + little_endian(values.size(), 8), data;
        for (const std::string &value : values) made += value;
        for (size_t i = 0; i < tensors.size(); i++) {
            const GgufEntry &t = tensors[i];
            made += gguf_text(t.name) + little_endian(t.extents.size(), 4);
            for (const uint64_t extent : t.extents) made += little_endian(extent, 8);
            made += little_endian(t.type, 4) + little_endian(offsets.empty() ? data.size() : offsets[i], 8);
            data += t.bytes;
            data.append((alignment - data.size() % alignment) % alignment, '\0');
        }
        made.append((alignment - made.size() % alignment) % alignment, '\0');
        return made + data;
    }
};

}  // namespace tessera::test

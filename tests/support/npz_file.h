// Files of arrays as numpy.savez writes them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::test {

inline std::string little(uint64_t value, size_t bytes) {
    std::string text;
    for (size_t i = 0; i < bytes; i++) text += static_cast<char>(value >> 8 * i);
    return text;
}

inline uint32_t crc_of(const std::string &bytes) {
    uint32_t c = 0xffffffff;
    for (unsigned char byte : bytes) {
        c ^= byte;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
    }
    return ~c;
}

inline std::string npy(const std::string &header, const std::string &data, int version = 1) {
    return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' + little(header.size(), version == 1 ? 2 : 4) + header + data;
}

inline std::string floats(const std::string &shape, size_t count) {
    return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }   \n", std::string(4 * count, '\x3f'));
}

struct NpzPart {
    std::string name, content;
    uint64_t method = 0;
};

// As numpy.savez writes it, with an extra field in the local header.
inline std::string zip_of(const std::vector<NpzPart> &parts) {
    std::string file, directory;
    for (const NpzPart &p : parts) {
        const std::string sizes = little(crc_of(p.content), 4) + little(p.content.size(), 4) + little(p.content.size(), 4);
        const std::string common = little(0, 2) + little(p.method, 2) + little(0, 4);
        directory += "PK\1\2" + little(20, 2) + little(20, 2) + common + sizes + little(p.name.size(), 2) + little(0, 2) + little(0, 2) +
                     little(0, 2) + little(0, 2) + little(0, 4) + little(file.size(), 4) + p.name;
        file += "PK\3\4" + little(20, 2) + common + sizes + little(p.name.size(), 2) + little(4, 2) + p.name + "more" + p.content;
    }
    const std::string count = little(parts.size(), 2);
    return file + directory + "PK\5\6" + little(0, 4) + count + count + little(directory.size(), 4) + little(file.size(), 4) + little(0, 2);
}

}  // namespace tessera::test

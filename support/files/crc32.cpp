#include "support/files/crc32.h"

#include <array>
#include <cstddef>

namespace tessera {

// tables[k][b] is what a byte b does to the checksum when k zeros follow it, so that eight bytes are taken at once.
static const std::array<std::array<uint32_t, 256>, 8> tables = [] {
    std::array<std::array<uint32_t, 256>, 8> made{};
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
        made[0][i] = c;
    }
    for (size_t k = 1; k < 8; k++)
        for (size_t i = 0; i < 256; i++) made[k][i] = made[0][made[k - 1][i] & 0xff] ^ made[k - 1][i] >> 8;
    return made;
}();

uint32_t crc32_of(std::string_view bytes, uint32_t before) {
    uint32_t crc = ~before;
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])); };
    size_t at = 0;
    for (; bytes.size() - at >= 8; at += 8) {
        uint32_t sum = 0;
        for (size_t k = 0; k < 4; k++) sum ^= tables[7 - k][(crc >> (8 * k) ^ byte(at + k)) & 0xff] ^ tables[3 - k][byte(at + 4 + k)];
        crc = sum;
    }
    for (; at < bytes.size(); at++) crc = tables[0][(crc ^ byte(at)) & 0xff] ^ crc >> 8;
    return ~crc;
}

}  // namespace tessera

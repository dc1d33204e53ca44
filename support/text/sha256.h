#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// "sha256:<64 hexadecimal digits>" (FIPS 180-4).
std::string sha256(std::string_view bytes);

// The same of bytes that come in parts.
class Sha256 {
public:
    void add(std::string_view bytes);
    std::string text() const;  // of all that was added

private:
    // The first 32 bits of the fractional parts of the square roots of the first 8 primes.
    std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::string rest_;  // of a block that is not whole
    uint64_t bytes_ = 0;
};

}  // namespace tessera

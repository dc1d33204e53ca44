#include "support/text/sha256.h"

#include <array>
#include <bit>
#include <cstddef>

namespace tessera {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
static constexpr std::array<uint32_t, 64> ROUND_CONSTANTS = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static constexpr size_t BLOCK = 64;
using State = std::array<uint32_t, 8>;

static void add_block(State &state, const char *block) {
    std::array<uint32_t, 64> words;
    for (size_t i = 0; i < 16; i++) {
        words[i] = 0;
        for (size_t j = 0; j < 4; j++) words[i] = words[i] << 8 | static_cast<unsigned char>(block[4 * i + j]);
    }
    for (size_t i = 16; i < 64; i++) {
        const uint32_t a = words[i - 15], b = words[i - 2];
        words[i] =
            words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + words[i - 7] + (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    // A round writes two of the eight; each is called with the names moved on by one, so that no value is moved.
    const auto round = [&](uint32_t a, uint32_t b, uint32_t c, uint32_t &d, uint32_t e, uint32_t f, uint32_t g, uint32_t &h, size_t i) {
        h += (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + (g ^ (e & (f ^ g))) + ROUND_CONSTANTS[i] + words[i];
        d += h;
        h += (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) | (c & (a | b)));
    };
    for (size_t i = 0; i < 64; i += 8) {
        round(a, b, c, d, e, f, g, h, i);
        round(h, a, b, c, d, e, f, g, i + 1);
        round(g, h, a, b, c, d, e, f, i + 2);
        round(f, g, h, a, b, c, d, e, i + 3);
        round(e, f, g, h, a, b, c, d, i + 4);
        round(d, e, f, g, h, a, b, c, i + 5);
        round(c, d, e, f, g, h, a, b, i + 6);
        round(b, c, d, e, f, g, h, a, i + 7);
    }
    const State added = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < state.size(); i++) state[i] += added[i];
}

void Sha256::add(std::string_view bytes) {
    bytes_ += bytes.size();
    if (!rest_.empty()) {
        const std::string_view part = bytes.substr(0, BLOCK - rest_.size());
        rest_ += part;
        bytes.remove_prefix(part.size());
        if (rest_.size() < BLOCK) return;
        add_block(state_, rest_.data());
        rest_.clear();
    }
    const size_t whole = bytes.size() / BLOCK * BLOCK;
    for (size_t at = 0; at < whole; at += BLOCK) add_block(state_, bytes.data() + at);
    rest_ += bytes.substr(whole);
}

std::string Sha256::text() const {
    // A bit, zeros, and the length in bits end the last block.
    State state = state_;
    std::string rest = rest_ + '\x80';
    while (rest.size() % BLOCK != BLOCK - 8) rest += '\0';
    for (int shift = 56; shift >= 0; shift -= 8) rest += static_cast<char>(8 * bytes_ >> shift);
    for (size_t at = 0; at < rest.size(); at += BLOCK) add_block(state, rest.data() + at);

    std::string text = "sha256:";
    for (const uint32_t word : state)
        for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
    return text;
}

std::string sha256(std::string_view bytes) {
    Sha256 hash;
    hash.add(bytes);
    return hash.text();
}

}  // namespace tessera

// XXH64, the hash of 64 bits by Yann Collet (doc/xxhash_spec.md of xxHash), of bytes that may come in several parts.
#pragma once
#include <cstdint>
#include <cstring>

namespace tessera::state {

class Xxh64 {
public:
    explicit Xxh64(uint64_t seed = 0) : seed_(seed), lanes_{seed + p1 + p2, seed + p2, seed, seed - p1} {}

    Xxh64 &add(const void *data, uint64_t bytes) {
        const auto *at = static_cast<const unsigned char *>(data);
        total_ += bytes;
        if (kept_ > 0) {
            const uint64_t taken = bytes < 32 - kept_ ? bytes : 32 - kept_;
            std::memcpy(rest_ + kept_, at, taken);
            kept_ += taken, at += taken, bytes -= taken;
            if (kept_ < 32) return *this;
            stripe(rest_);
            kept_ = 0;
        }
        for (; bytes >= 32; at += 32, bytes -= 32) stripe(at);
        if (bytes > 0) std::memcpy(rest_, at, bytes);
        kept_ = bytes;
        return *this;
    }

    uint64_t value() const {
        uint64_t h = total_ < 32 ? seed_ + p5 : merged();
        h += total_;
        uint64_t at = 0;
        for (; at + 8 <= kept_; at += 8) h = turned(h ^ round(0, word(rest_ + at)), 27) * p1 + p4;
        if (at + 4 <= kept_) {
            uint32_t half;
            std::memcpy(&half, rest_ + at, 4);
            h = turned(h ^ half * p1, 23) * p2 + p3;
            at += 4;
        }
        for (; at < kept_; at++) h = turned(h ^ rest_[at] * p5, 11) * p1;
        h = (h ^ h >> 33) * p2;
        h = (h ^ h >> 29) * p3;
        return h ^ h >> 32;
    }

private:
    static constexpr uint64_t p1 = 0x9E3779B185EBCA87, p2 = 0xC2B2AE3D27D4EB4F, p3 = 0x165667B19E3779F9, p4 = 0x85EBCA77C2B2AE63,
                              p5 = 0x27D4EB2F165667C5;
    uint64_t seed_, lanes_[4], total_ = 0, kept_ = 0;
    unsigned char rest_[32] = {};

    static uint64_t turned(uint64_t x, int by) { return x << by | x >> (64 - by); }
    static uint64_t round(uint64_t lane, uint64_t input) { return turned(lane + input * p2, 31) * p1; }
    static uint64_t word(const unsigned char *at) {
        uint64_t read;
        std::memcpy(&read, at, 8);
        return read;
    }
    void stripe(const unsigned char *at) {
        for (int i = 0; i < 4; i++) lanes_[i] = round(lanes_[i], word(at + 8 * i));
    }
    uint64_t merged() const {
        uint64_t h = turned(lanes_[0], 1) + turned(lanes_[1], 7) + turned(lanes_[2], 12) + turned(lanes_[3], 18);
        for (const uint64_t lane : lanes_) h = (h ^ round(0, lane)) * p1 + p4;
        return h;
    }
};

inline uint64_t xxh64(const void *data, uint64_t bytes, uint64_t seed = 0) { return Xxh64(seed).add(data, bytes).value(); }

}  // namespace tessera::state

/// Folds of elements, written apart from the library: floats by exact arithmetic in f64 and one rounding, and the tree by its rule.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "runtime/mesh/mesh.h"

namespace tessera::test_mesh {

using Bytes = std::vector<unsigned char>;

inline double power_of_two(int e) { return std::ldexp(1.0, e); }

/// A float of `mantissa` stored bits and `exponent` bits.
inline double decoded(uint32_t bits, int mantissa, int exponent) {
    const int bias = (1 << (exponent - 1)) - 1, e = int(bits >> mantissa) & ((1 << exponent) - 1);
    const double fraction = double(bits & ((1u << mantissa) - 1)), sign = bits >> (mantissa + exponent) & 1 ? -1 : 1;
    if (e == (1 << exponent) - 1) return fraction != 0 ? NAN : sign * INFINITY;
    return sign * (e == 0 ? std::ldexp(fraction, 1 - bias - mantissa) : std::ldexp(fraction + power_of_two(mantissa), e - bias - mantissa));
}

inline uint32_t encoded(double x, int mantissa, int exponent) {
    const int bias = (1 << (exponent - 1)) - 1;
    const uint32_t infinity = uint32_t((1 << exponent) - 1) << mantissa;
    if (std::isnan(x)) return infinity | 1u << (mantissa - 1);
    const uint32_t sign = uint32_t(std::signbit(x)) << (mantissa + exponent);
    x = std::fabs(x);
    if (std::isinf(x)) return sign | infinity;
    int e = x == 0 ? 1 - bias : std::ilogb(x);
    if (e < 1 - bias) e = 1 - bias;
    const double units = std::nearbyint(std::ldexp(x, mantissa - e));  // ties to even
    const auto whole = uint32_t(units);
    const uint32_t bits = whole + (uint32_t(e + bias - 1) << mantissa);
    return sign | (bits >= infinity ? infinity : bits);
}

template <class T>
T of(const unsigned char *at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <class T>
void put(unsigned char *at, T value) {
    std::memcpy(at, &value, sizeof value);
}

template <class T>
T folded_float(int monoid, T a, T b) {
    T x;
    if (monoid == TESS_SUM) x = a + b;
    else if (monoid == TESS_PRODUCT) x = a * b;
    else if (std::isnan(a) || std::isnan(b)) x = std::numeric_limits<T>::quiet_NaN();
    else if (monoid == TESS_MAX) x = a > b ? a : b;
    else x = a < b ? a : b;
    return std::isnan(x) ? std::numeric_limits<T>::quiet_NaN() : x;
}

template <class T, class U>
T folded_integer(int monoid, T a, T b) {
    if (monoid == TESS_SUM) return T(U(a) + U(b));
    if (monoid == TESS_PRODUCT) return T(U(a) * U(b));
    if (monoid == TESS_MAX) return a > b ? a : b;
    return a < b ? a : b;
}

inline void fold_element(int dtype, int monoid, unsigned char *to, const unsigned char *a, const unsigned char *b) {
    const auto small = [&](int mantissa, int exponent) {
        const double x = decoded(of<uint16_t>(a), mantissa, exponent), y = decoded(of<uint16_t>(b), mantissa, exponent);
        put(to, uint16_t(encoded(folded_float(monoid, x, y), mantissa, exponent)));
    };
    switch (dtype) {
    case TESS_F32: put(to, folded_float(monoid, of<float>(a), of<float>(b))); break;
    case TESS_F64: put(to, folded_float(monoid, of<double>(a), of<double>(b))); break;
    case TESS_F16: small(10, 5); break;
    case TESS_BF16: small(7, 8); break;
    case TESS_I32: put(to, folded_integer<int32_t, uint32_t>(monoid, of<int32_t>(a), of<int32_t>(b))); break;
    default: put(to, folded_integer<int64_t, uint64_t>(monoid, of<int64_t>(a), of<int64_t>(b)));
    }
}

/// The fold of chunks [lo, hi), split behind the largest power of two below their number.
inline Bytes folded(int dtype, int monoid, const std::vector<Bytes> &chunks, size_t lo, size_t hi) {
    if (hi - lo == 1) return chunks[lo];
    const size_t left = std::bit_floor(hi - lo - 1);
    Bytes a = folded(dtype, monoid, chunks, lo, lo + left);
    const Bytes b = folded(dtype, monoid, chunks, lo + left, hi);
    const size_t size = tess_dtype_size(dtype);
    for (size_t at = 0; at < a.size(); at += size) fold_element(dtype, monoid, &a[at], &a[at], &b[at]);
    return a;
}

inline bool is_float(int dtype) { return dtype == TESS_F32 || dtype == TESS_F64 || dtype == TESS_F16 || dtype == TESS_BF16; }

/// Elements of all kinds: some near 1, some of any bits, NaN and infinities and subnormals among them.
inline Bytes elements(int dtype, size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    const size_t size = tess_dtype_size(dtype);
    Bytes bytes(size * count);
    for (size_t i = 0; i < count; ++i) {
        const uint64_t word = random();
        unsigned char *at = &bytes[i * size];
        const double near_one = double(int64_t(word >> 11)) / double(1LL << 52) - 1;
        std::memcpy(at, &word, size);
        if (!is_float(dtype) || word % 8 == 0) continue;
        if (dtype == TESS_F32) put(at, float(near_one));
        if (dtype == TESS_F64) put(at, near_one);
        if (dtype == TESS_F16) put(at, uint16_t(encoded(near_one, 10, 5)));
        if (dtype == TESS_BF16) put(at, uint16_t(encoded(near_one, 7, 8)));
    }
    return bytes;
}

}  // namespace tessera::test_mesh

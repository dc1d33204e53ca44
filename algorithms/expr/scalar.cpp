#include "algorithms/expr/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/text/error.h"

namespace tessera {

// A double rounded once to a format with `mantissa` stored bits and a biased exponent of `exponent` bits.
static double round_to_format(double value, int mantissa, int exponent) {
    if (!std::isfinite(value) || value == 0) return value;
    int bias = (1 << (exponent - 1)) - 1;
    int e = std::max(std::ilogb(value), 1 - bias);
    double ulp = std::ldexp(1.0, e - mantissa);
    double rounded = std::nearbyint(value / ulp) * ulp;
    double limit = std::ldexp(2.0 - std::ldexp(1.0, -mantissa), bias);
    return std::fabs(rounded) > limit ? std::copysign(INFINITY, value) : rounded;
}

Scalar Scalar::of_real(DType type, double value) {
    Scalar s;
    s.type = type;
    const DTypeTraits &traits = traits_of(type);
    if (traits.kind != DTypeKind::real) throw InternalError("of_real wants a float type");
    if (type == DType::f64) s.real = value;
    else if (type == DType::f32) s.real = static_cast<float>(value);
    else s.real = round_to_format(value, traits.mantissa, traits.exponent);
    return s;
}

Scalar Scalar::of_integer(DType type, int64_t value) {
    Scalar s;
    s.type = type;
    switch (type) {
    case DType::i8: s.integer = static_cast<int8_t>(value); break;
    case DType::u8: s.integer = static_cast<uint8_t>(value); break;
    case DType::i32: s.integer = static_cast<int32_t>(value); break;
    case DType::boolean: s.integer = value != 0; break;
    case DType::i64:
    case DType::index: s.integer = value; break;
    case DType::f32:
    case DType::f64:
    case DType::bf16:
    case DType::f16: throw InternalError("of_integer wants an integer type");
    }
    return s;
}

bool operator==(const Scalar &a, const Scalar &b) {
    if (a.type != b.type) return false;
    if (!is_float(a.type)) return a.integer == b.integer;
    if (std::isnan(a.real) || std::isnan(b.real)) return std::isnan(a.real) && std::isnan(b.real);
    return a.real == b.real && std::signbit(a.real) == std::signbit(b.real);
}

// f32 add, sub, mul, div and sqrt done in double and rounded once more are correctly rounded, because double has more
// than twice f32's precision; fma is not, so it is done in f32.
static Scalar apply_real(Op op, DType type, double a, double b, double c) {
    if (is_comparison(op)) return Scalar::of_integer(DType::boolean, compared(op, a, b));
    if (op == Op::fma && type == DType::f32)
        return Scalar::of_real(type, real_value(op, static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
    return Scalar::of_real(type, real_value(op, a, b, c));
}

static Scalar apply_integer(Op op, DType type, int64_t a, int64_t b, int64_t c) {
    if (is_comparison(op)) return Scalar::of_integer(DType::boolean, compared(op, a, b));
    return Scalar::of_integer(type, static_cast<int64_t>(integer_value(op, type, a, b, c)));
}

Scalar apply(Op op, const Scalar *x) {
    if (op == Op::select) return x[0].truth() ? x[1] : x[2];
    int n = arity(op);
    DType type = x[0].type;
    if (is_float(type)) return apply_real(op, type, x[0].real, n > 1 ? x[1].real : 0, n > 2 ? x[2].real : 0);
    return apply_integer(op, type, x[0].integer, n > 1 ? x[1].integer : 0, n > 2 ? x[2].integer : 0);
}

Scalar convert(DType type, Rounding rounding, bool saturate, const Scalar &value) {
    if (type == DType::boolean) return Scalar::of_integer(type, is_float(value.type) ? value.real != 0 : value.integer != 0);
    if (is_float(type)) {
        if (is_float(value.type)) return Scalar::of_real(type, value.real);
        // An i64 has more bits than a double: round once, to the target.
        if (type == DType::f32) return Scalar::of_real(type, static_cast<float>(value.integer));
        return Scalar::of_real(type, static_cast<double>(value.integer));
    }
    const DTypeTraits &limits = traits_of(type);
    if (is_float(value.type)) {
        double r = rounding == Rounding::nearest_even ? std::nearbyint(value.real) : std::trunc(value.real);
        if (std::isnan(r)) return Scalar::of_integer(type, saturate ? 0 : limits.lowest);
        if (r < static_cast<double>(limits.lowest)) return Scalar::of_integer(type, limits.lowest);
        if (r > highest_real(type)) return Scalar::of_integer(type, saturate ? limits.highest : limits.lowest);
        return Scalar::of_integer(type, static_cast<int64_t>(r));
    }
    int64_t v = value.integer;
    if (saturate || type == DType::index) v = v < limits.lowest ? limits.lowest : v > limits.highest ? limits.highest : v;
    return Scalar::of_integer(type, v);
}

Scalar bitcast(DType type, const Scalar &value) {
    if (type == DType::i32) return Scalar::of_integer(type, std::bit_cast<int32_t>(static_cast<float>(value.real)));
    if (type == DType::i64) return Scalar::of_integer(type, std::bit_cast<int64_t>(value.real));
    if (type == DType::f32) return Scalar::of_real(type, std::bit_cast<float>(static_cast<int32_t>(value.integer)));
    return Scalar::of_real(type, std::bit_cast<double>(value.integer));
}

template <typename T>
static T read(const void *address) {
    T value;
    std::memcpy(&value, address, sizeof value);
    return value;
}

static double half_to_real(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double sign = bits >> 15 ? -1 : 1;
    if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
    return sign * (exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24));
}

static uint16_t real_to_half(double value) {
    uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    if (std::isnan(value)) return sign | 0x7e00;
    double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return sign | 0x7c00;
    if (magnitude == 0) return sign;
    int e = std::max(std::ilogb(magnitude), -14);
    int scaled = static_cast<int>(std::ldexp(magnitude, 10 - e));  // 1024..2047, or below for a subnormal
    return sign | static_cast<uint16_t>(scaled < 1024 ? scaled : ((e + 15) << 10) + scaled - 1024);
}

Scalar load_scalar(DType type, const void *p) {
    switch (type) {
    case DType::f32: return Scalar::of_real(type, read<float>(p));
    case DType::f64: return Scalar::of_real(type, read<double>(p));
    case DType::bf16: return Scalar::of_real(type, std::bit_cast<float>(static_cast<uint32_t>(read<uint16_t>(p)) << 16));
    case DType::f16: return Scalar::of_real(type, half_to_real(read<uint16_t>(p)));
    case DType::i8: return Scalar::of_integer(type, read<int8_t>(p));
    case DType::u8:
    case DType::boolean: return Scalar::of_integer(type, read<uint8_t>(p));
    case DType::i32: return Scalar::of_integer(type, read<int32_t>(p));
    case DType::i64: return Scalar::of_integer(type, read<int64_t>(p));
    case DType::index: break;
    }
    throw InternalError("an index is never stored");
}

template <typename T>
static void write(void *address, T value) {
    std::memcpy(address, &value, sizeof value);
}

void store_scalar(void *p, const Scalar &s) {
    switch (s.type) {
    case DType::f32: return write(p, static_cast<float>(s.real));
    case DType::f64: return write(p, s.real);
    case DType::bf16: {
        uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(s.real));
        return write(p, static_cast<uint16_t>(std::isnan(s.real) ? (bits >> 16 | 0x40) : bits >> 16));
    }
    case DType::f16: return write(p, real_to_half(s.real));
    case DType::i8: return write(p, static_cast<int8_t>(s.integer));
    case DType::u8:
    case DType::boolean: return write(p, static_cast<uint8_t>(s.integer));
    case DType::i32: return write(p, static_cast<int32_t>(s.integer));
    case DType::i64: return write(p, s.integer);
    case DType::index: break;
    }
    throw InternalError("an index is never stored");
}

}  // namespace tessera

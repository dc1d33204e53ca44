#include "algorithms/expr/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/text/error.h"

namespace tessera {

const char *name_of(Rounding rounding) {
    switch (rounding) {
    case Rounding::nearest_even: return "nearest_even";
    case Rounding::toward_zero: return "toward_zero";
    case Rounding::up: return "up";
    case Rounding::down: return "down";
    }
    throw InternalError("a rounding without a name");
}

static double whole(double value, Rounding rounding) {
    switch (rounding) {
    case Rounding::nearest_even: return std::nearbyint(value);
    case Rounding::toward_zero: return std::trunc(value);
    case Rounding::up: return std::ceil(value);
    case Rounding::down: return std::floor(value);
    }
    throw InternalError("an unknown rounding");
}

// ---- formats of floats

static double decoded_magnitude(const DTypeTraits &f, uint32_t magnitude) {
    const int exponent = static_cast<int>(magnitude >> f.mantissa);
    const double rest = magnitude & ((uint32_t{1} << f.mantissa) - 1), one = uint32_t{1} << f.mantissa;
    const bool is_subnormal = f.has_zero && exponent == 0;
    return std::ldexp(is_subnormal ? rest : one + rest, (is_subnormal ? 1 : exponent) - f.bias - f.mantissa);
}

double highest_finite(const DTypeTraits &f) {
    if (f.mantissa > 10)
        return f.mantissa == 23 ? static_cast<double>(std::numeric_limits<float>::max()) : std::numeric_limits<double>::max();
    return decoded_magnitude(f, first_special(f) - 1);
}

double decoded(const DTypeTraits &f, uint32_t code) {
    const uint32_t magnitude = code & magnitude_mask(f), sign = code & sign_bit(f), special = first_special(f);
    if (f.specials == Specials::minus_zero && sign && !magnitude) return NAN;
    if (magnitude > special || (magnitude == special && f.specials != Specials::ieee)) return NAN;  // no code is, where there are none
    const double value = magnitude == special ? INFINITY : decoded_magnitude(f, magnitude);
    return sign ? -value : value;
}

uint32_t encoded(const DTypeTraits &f, double value) {
    const uint32_t special = first_special(f), sign = std::signbit(value) ? sign_bit(f) : 0;
    if (std::isnan(value)) return nan_code(f);
    const double magnitude = std::fabs(value);
    if (std::isinf(magnitude)) return sign | special;
    if (magnitude == 0) return sign;
    const int e = std::max(std::ilogb(magnitude), (f.has_zero ? 1 : 0) - f.bias);
    const auto scaled = static_cast<uint32_t>(std::ldexp(magnitude, f.mantissa - e));  // with the bit in front of the mantissa
    return sign | ((static_cast<uint32_t>(e + f.bias - (f.has_zero ? 1 : 0)) << f.mantissa) + scaled - (f.has_zero ? 0 : 1));
}

// A double rounded once.
static double round_to_format(const DTypeTraits &f, double value, Rounding rounding, bool saturate) {
    if (std::isnan(value) && f.specials == Specials::none) return -0.0;
    if (std::isnan(value) || (!f.is_signed && !(value > 0))) return NAN;
    const bool rises =
        rounding == Rounding::nearest_even || (rounding == Rounding::up && value > 0) || (rounding == Rounding::down && value < 0);
    const double limit = highest_finite(f);
    double rounded = value;
    if (std::isfinite(value) && value != 0) {
        const int e = std::max(std::ilogb(value), (f.has_zero ? 1 : 0) - f.bias);
        const double ulp = std::ldexp(1.0, e - f.mantissa);
        rounded = whole(value / ulp, rounding) * ulp;
        if (!f.has_zero && rounded == 0) rounded = ulp;
        if (std::fabs(rounded) > limit) rounded = std::copysign(rises ? INFINITY : limit, value);
        else rounded = std::copysign(rounded, value);
    }
    if (std::isinf(rounded) && (saturate || f.specials == Specials::none)) rounded = std::copysign(limit, value);
    if (std::isinf(rounded) && f.specials != Specials::ieee) return NAN;
    return rounded == 0 && f.specials == Specials::minus_zero ? 0 : rounded;
}

// An i64 as a double that any narrower format rounds to the same: what does not fit sets the last bit.
static double odd_double(int64_t value) {
    uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    const int cut = std::max(0, static_cast<int>(std::bit_width(magnitude)) - 53);
    const uint64_t rest = magnitude & ((uint64_t{1} << cut) - 1);
    magnitude = magnitude >> cut | (rest != 0);
    return std::copysign(std::ldexp(static_cast<double>(magnitude), cut), static_cast<double>(value));
}

Scalar Scalar::of_real(DType type, double value) {
    Scalar s;
    s.type = type;
    const DTypeTraits &traits = traits_of(type);
    if (traits.kind != DTypeKind::real) throw InternalError("of_real wants a float type");
    if (type == DType::f64) s.real = value;
    else if (type == DType::f32) s.real = static_cast<float>(value);
    else s.real = round_to_format(traits, value, Rounding::nearest_even, false);
    return s;
}

// The number of an integer type of four bits that these low bits stand for.
static int64_t number_of_half(DType type, int64_t code) {
    const int64_t low = code & 15;
    return low > traits_of(type).highest ? low - 16 : low;
}

Scalar Scalar::of_integer(DType type, int64_t value) {
    Scalar s;
    s.type = type;
    if (is_float(type)) throw InternalError("of_integer wants an integer type");
    switch (held_as(type)) {
    case Held::i8: s.integer = static_cast<int8_t>(value); break;
    case Held::u8: s.integer = type == DType::u8 ? static_cast<uint8_t>(value) : number_of_half(type, value); break;
    case Held::i32: s.integer = static_cast<int32_t>(value); break;
    case Held::truth: s.integer = value != 0; break;
    case Held::i64:
    case Held::position: s.integer = value; break;
    case Held::f32:
    case Held::f64:
    case Held::half: break;
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
    if (is_narrow_float(type)) {
        const double exact = is_float(value.type) ? value.real : odd_double(value.integer);
        Scalar s{type};
        s.real = round_to_format(traits_of(type), exact, rounding, saturate);
        return s;
    }
    if (is_float(type)) {
        if (is_float(value.type)) return Scalar::of_real(type, value.real);
        // An i64 has more bits than a double: round once, to the target.
        if (type == DType::f32) return Scalar::of_real(type, static_cast<float>(value.integer));
        return Scalar::of_real(type, static_cast<double>(value.integer));
    }
    const DTypeTraits &limits = traits_of(type);
    if (is_float(value.type)) {
        double r = whole(value.real, rounding);
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
    if (type == DType::u8) return Scalar::of_integer(type, static_cast<int64_t>(stored_bits(value)));
    if (is_coded(type) && !is_float(type)) return Scalar::of_integer(type, value.integer);
    if (is_coded(type)) return Scalar::of_real(type, decoded(traits_of(type), static_cast<uint32_t>(value.integer)));
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

Scalar load_scalar(DType type, const void *p) {
    auto real = [&](uint32_t code) { return Scalar::of_real(type, decoded(traits_of(type), code)); };
    switch (held_as(type)) {
    case Held::f32: return Scalar::of_real(type, read<float>(p));
    case Held::f64: return Scalar::of_real(type, read<double>(p));
    case Held::half: return real(read<uint16_t>(p));
    case Held::i8: return Scalar::of_integer(type, read<int8_t>(p));
    case Held::u8: return is_float(type) ? real(read<uint8_t>(p)) : Scalar::of_integer(type, read<uint8_t>(p));
    case Held::truth: return Scalar::of_integer(type, read<uint8_t>(p));
    case Held::i32: return Scalar::of_integer(type, read<int32_t>(p));
    case Held::i64: return Scalar::of_integer(type, read<int64_t>(p));
    case Held::position: break;
    }
    throw InternalError("an index is never stored");
}

template <typename T>
static void write(void *address, T value) {
    std::memcpy(address, &value, sizeof value);
}

void store_scalar(void *p, const Scalar &s) {
    switch (held_as(s.type)) {
    case Held::f32: return write(p, static_cast<float>(s.real));
    case Held::f64: return write(p, s.real);
    case Held::half: return write(p, static_cast<uint16_t>(encoded(traits_of(s.type), s.real)));
    case Held::i8: return write(p, static_cast<int8_t>(s.integer));
    case Held::u8:
        return write(p, static_cast<uint8_t>(is_float(s.type)   ? encoded(traits_of(s.type), s.real)
                                             : is_coded(s.type) ? s.integer & 15
                                                                : s.integer));
    case Held::truth: return write(p, static_cast<uint8_t>(s.integer));
    case Held::i32: return write(p, static_cast<int32_t>(s.integer));
    case Held::i64: return write(p, s.integer);
    case Held::position: break;
    }
    throw InternalError("an index is never stored");
}

uint64_t stored_bits(const Scalar &s) {
    uint64_t bits = 0;  // low bytes first, as on every machine that this runs on
    store_scalar(&bits, s);
    return bits;
}

}  // namespace tessera

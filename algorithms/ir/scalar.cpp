#include "algorithms/ir/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/text/error.h"

namespace tessera {

struct OpRow {
    const char *name;
    int arity;
};
static constexpr OpRow op_table[] = {
    {"neg", 1}, {"abs", 1}, {"sqrt", 1}, {"floor", 1}, {"ceil", 1}, {"round", 1}, {"trunc", 1}, {"not", 1},    {"add", 2},
    {"sub", 2}, {"mul", 2}, {"div", 2},  {"mod", 2},   {"min", 2},  {"max", 2},   {"and", 2},   {"or", 2},     {"xor", 2},
    {"shl", 2}, {"shr", 2}, {"eq", 2},   {"ne", 2},    {"lt", 2},   {"le", 2},    {"fma", 3},   {"select", 3},
};

const char *name_of(Op op) { return op_table[static_cast<size_t>(op)].name; }
int arity(Op op) { return op_table[static_cast<size_t>(op)].arity; }

Op op_named(const std::string &name) {
    std::vector<std::string> names;
    for (size_t i = 0; i < std::size(op_table); i++) {
        if (name == op_table[i].name) return static_cast<Op>(i);
        names.push_back(op_table[i].name);
    }
    throw UserError("op.unknown",
                    "there is no operation '" + name + "'; the operations are " + join(names) + "." + did_you_mean(name, names));
}

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
// than twice f32's precision; fma is not, so it has its own instruction.
static Scalar apply_real(Op op, DType type, double a, double b, double c) {
    switch (op) {
    case Op::neg: return Scalar::of_real(type, -a);
    case Op::abs: return Scalar::of_real(type, std::fabs(a));
    case Op::sqrt: return Scalar::of_real(type, std::sqrt(a));
    case Op::floor: return Scalar::of_real(type, std::floor(a));
    case Op::ceil: return Scalar::of_real(type, std::ceil(a));
    case Op::round: return Scalar::of_real(type, std::nearbyint(a));
    case Op::trunc: return Scalar::of_real(type, std::trunc(a));
    case Op::add: return Scalar::of_real(type, a + b);
    case Op::sub: return Scalar::of_real(type, a - b);
    case Op::mul: return Scalar::of_real(type, a * b);
    case Op::div: return Scalar::of_real(type, a / b);
    case Op::min: return Scalar::of_real(type, a < b ? a : b);
    case Op::max: return Scalar::of_real(type, a > b ? a : b);
    case Op::eq: return Scalar::of_integer(DType::boolean, a == b);
    case Op::ne: return Scalar::of_integer(DType::boolean, a != b);
    case Op::lt: return Scalar::of_integer(DType::boolean, a < b);
    case Op::le: return Scalar::of_integer(DType::boolean, a <= b);
    case Op::fma:
        if (type == DType::f32) return Scalar::of_real(type, std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
        return Scalar::of_real(type, std::fma(a, b, c));
    default: throw InternalError(std::string(name_of(op)) + " is not defined on floats");
    }
}

static int64_t floor_div(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
    int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

static Scalar apply_integer(Op op, DType type, int64_t a, int64_t b, int64_t c) {
    auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
    auto wrap = [&](uint64_t v) { return Scalar::of_integer(type, static_cast<int64_t>(v)); };
    int width = type == DType::i32 ? 32 : 64;
    auto truth = [](bool v) { return Scalar::of_integer(DType::boolean, v); };
    switch (op) {
    case Op::neg: return wrap(-u(a));
    case Op::abs: return wrap(a < 0 ? -u(a) : u(a));
    case Op::logical_not: return Scalar::of_integer(type, type == DType::boolean ? !a : ~a);
    case Op::add: return wrap(u(a) + u(b));
    case Op::sub: return wrap(u(a) - u(b));
    case Op::mul: return wrap(u(a) * u(b));
    case Op::div: return wrap(u(floor_div(a, b)));
    case Op::mod: return wrap(b == 0 ? 0 : u(a) - u(floor_div(a, b)) * u(b));
    case Op::min: return wrap(u(a < b ? a : b));
    case Op::max: return wrap(u(a > b ? a : b));
    case Op::bit_and: return wrap(u(a) & u(b));
    case Op::bit_or: return wrap(u(a) | u(b));
    case Op::bit_xor: return wrap(u(a) ^ u(b));
    case Op::shl: return wrap(u(a) << (u(b) % width));
    case Op::shr: return wrap(u(a >> (u(b) % width)));
    case Op::eq: return truth(a == b);
    case Op::ne: return truth(a != b);
    case Op::lt: return truth(a < b);
    case Op::le: return truth(a <= b);
    case Op::fma: return wrap(u(a) * u(b) + u(c));
    default: throw InternalError(std::string(name_of(op)) + " is not defined on integers");
    }
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

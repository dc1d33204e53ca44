// Element types. Arithmetic happens in f32, f64, i32, i64, bool and index; the narrow types are for storage and are
// converted by explicit casts.
//
// The table says what a type is: of a float all that its format is, from which reading and writing it are derived (scalar.cpp).
// What else gives types a meaning has a switch over what they are held as, so that no room learns the formats of floats one by one: the
// interpreter's registers (evaluate/tape.cpp), names and constants in each emitter. A number in the ABI stands in compiler/emit/spec.cpp.
#pragma once
#include <array>
#include <cstdint>
#include <string>

namespace tessera {

// The order means nothing.
enum class DType : uint8_t {
    f32,
    f64,
    bf16,
    f16,
    i8,
    u8,
    i32,
    i64,
    boolean,
    // Floats of one byte, by their names in the Python package ml_dtypes, without "float": OCP's of 2023 (f8e4m3fn, f8e5m2), those that
    // follow IEEE 754 (f8e4m3), those without -0 and infinities (fnuz), and the scales of microscaling (f8e8m0fnu).
    f8e4m3fn,
    f8e4m3,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f8e8m0fnu,
    // Floats of six and four bits, by ml_dtypes's names too; without NaN and infinities. One of six bits fills a byte.
    f6e2m3fn,
    f6e3m2fn,
    f4e2m1fn,
    // Integers of four bits.
    i4,
    u4,
    index,  // positions and extents; wide enough for any legal tensor (spans stay under 2^31 elements)
};

enum class DTypeKind : uint8_t { real, integer, truth, position };

// Which codes of a float are no finite numbers.
enum class Specials : uint8_t {
    ieee,        // those with all bits of the exponent: infinity where the mantissa is 0, NaN elsewhere
    all_ones,    // (fn) NaN with all bits of exponent and mantissa; there is no infinity
    minus_zero,  // (fnuz) NaN where -0 would be; there is neither -0 nor infinity
    none,        // all are finite: what is too large becomes the largest number, NaN becomes -0
};

// What memory and registers hold: all that machine code has to know of a type. What has fewer bits than a half and no machine type of its
// own is held as its code, which casts take apart with operations on integers (functions/conversions.h).
enum class Held : uint8_t { f32, f64, half, i8, u8, i32, i64, truth, position };

struct DTypeTraits {
    DType type;
    const char *name;
    int bytes;  // of one element stored by itself; 0: never stored
    DTypeKind kind;
    Held held;
    bool arithmetic;                  // may be an operand of an operation
    int mantissa = 0;                 // real: stored bits of it
    int exponent = 0;                 // real: bits of it
    int bias = 0;                     // real: of the exponent
    Specials specials = {};           // real
    bool is_signed = true;            // real: the highest bit is a sign
    bool has_zero = true;             // real: an exponent of 0 is that of zero and of subnormal numbers, not one like others
    int64_t lowest = 0, highest = 0;  // others: the range of values
    // Two elements of a tensor in a byte, the first one in the low half. Each row along the last dim begins at a byte; where it ends within
    // one, the high half is 0 when written and nothing when read.
    bool in_half_bytes = false;
};

namespace dtype_rows {
constexpr DTypeTraits wide(DType type, const char *name, int bytes, Held held, int exponent, int mantissa, bool arithmetic) {
    return {type, name, bytes, DTypeKind::real, held, arithmetic, mantissa, exponent, (1 << (exponent - 1)) - 1};
}
constexpr DTypeTraits coded(DType type, const char *name, int exponent, int mantissa, int bias, Specials specials, bool is_scale = false) {
    return {.type = type,
            .name = name,
            .bytes = 1,
            .kind = DTypeKind::real,
            .held = Held::u8,
            .arithmetic = false,
            .mantissa = mantissa,
            .exponent = exponent,
            .bias = bias,
            .specials = specials,
            .is_signed = !is_scale,
            .has_zero = !is_scale,
            .in_half_bytes = !is_scale + exponent + mantissa == 4};
}
constexpr DTypeTraits half_byte(DType type, const char *name, int64_t lowest, int64_t highest) {
    return {.type = type,
            .name = name,
            .bytes = 1,
            .kind = DTypeKind::integer,
            .held = Held::u8,
            .arithmetic = false,
            .lowest = lowest,
            .highest = highest,
            .in_half_bytes = true};
}
constexpr DTypeTraits whole(DType type, const char *name, int bytes, DTypeKind kind, Held held, bool arithmetic, int64_t lowest,
                            int64_t highest) {
    return {.type = type,
            .name = name,
            .bytes = bytes,
            .kind = kind,
            .held = held,
            .arithmetic = arithmetic,
            .lowest = lowest,
            .highest = highest};
}
}  // namespace dtype_rows

inline constexpr std::array dtypes = {
    // Bits of exponent and mantissa.
    dtype_rows::wide(DType::f32, "f32", 4, Held::f32, 8, 23, true),
    dtype_rows::wide(DType::f64, "f64", 8, Held::f64, 11, 52, true),
    dtype_rows::wide(DType::bf16, "bf16", 2, Held::half, 8, 7, false),
    dtype_rows::wide(DType::f16, "f16", 2, Held::half, 5, 10, false),
    dtype_rows::whole(DType::i8, "i8", 1, DTypeKind::integer, Held::i8, false, INT8_MIN, INT8_MAX),
    dtype_rows::whole(DType::u8, "u8", 1, DTypeKind::integer, Held::u8, false, 0, UINT8_MAX),
    dtype_rows::whole(DType::i32, "i32", 4, DTypeKind::integer, Held::i32, true, INT32_MIN, INT32_MAX),
    dtype_rows::whole(DType::i64, "i64", 8, DTypeKind::integer, Held::i64, true, INT64_MIN, INT64_MAX),
    dtype_rows::whole(DType::boolean, "bool", 1, DTypeKind::truth, Held::truth, true, 0, 1),
    // Bits of exponent and mantissa, and the exponent's bias.
    dtype_rows::coded(DType::f8e4m3fn, "f8e4m3fn", 4, 3, 7, Specials::all_ones),
    dtype_rows::coded(DType::f8e4m3, "f8e4m3", 4, 3, 7, Specials::ieee),
    dtype_rows::coded(DType::f8e4m3fnuz, "f8e4m3fnuz", 4, 3, 8, Specials::minus_zero),
    dtype_rows::coded(DType::f8e5m2, "f8e5m2", 5, 2, 15, Specials::ieee),
    dtype_rows::coded(DType::f8e5m2fnuz, "f8e5m2fnuz", 5, 2, 16, Specials::minus_zero),
    dtype_rows::coded(DType::f8e8m0fnu, "f8e8m0fnu", 8, 0, 127, Specials::all_ones, true),
    dtype_rows::coded(DType::f6e2m3fn, "f6e2m3fn", 2, 3, 1, Specials::none),
    dtype_rows::coded(DType::f6e3m2fn, "f6e3m2fn", 3, 2, 3, Specials::none),
    dtype_rows::coded(DType::f4e2m1fn, "f4e2m1fn", 2, 1, 1, Specials::none),
    dtype_rows::half_byte(DType::i4, "i4", -8, 7),
    dtype_rows::half_byte(DType::u4, "u4", 0, 15),
    dtype_rows::whole(DType::index, "index", 0, DTypeKind::position, Held::position, true, INT32_MIN, INT32_MAX),
};
static_assert(
    [] {
        for (size_t i = 0; i < dtypes.size(); i++)
            if (dtypes[i].type != static_cast<DType>(i)) return false;
        return dtypes.size() == static_cast<size_t>(DType::index) + 1;
    }(),
    "every type has its traits, in the order of the enumeration");

constexpr const DTypeTraits &traits_of(DType type) { return dtypes[static_cast<size_t>(type)]; }

int size_of(DType type);  // bytes of one element stored by itself; index has none (throws InternalError)
constexpr bool is_in_half_bytes(DType type) { return traits_of(type).in_half_bytes; }
constexpr bool is_float(DType type) { return traits_of(type).kind == DTypeKind::real; }
constexpr bool is_integer(DType type) { return traits_of(type).kind == DTypeKind::integer || traits_of(type).kind == DTypeKind::position; }
// May be an operand of an operation: f32, f64, i32, i64, boolean, index.
constexpr bool is_arithmetic(DType type) { return traits_of(type).arithmetic; }
// A format's code: the bits below the sign, the sign, and the magnitude that follows that of the largest finite number: the first of
// those that are infinite or NaN.
constexpr uint32_t magnitude_mask(const DTypeTraits &f) { return (uint32_t{1} << (f.exponent + f.mantissa)) - 1; }
constexpr uint32_t sign_bit(const DTypeTraits &f) { return f.is_signed ? magnitude_mask(f) + 1 : 0; }
constexpr uint32_t first_special(const DTypeTraits &f) {
    const uint32_t all = magnitude_mask(f);  // with `none` what follows has no code
    return f.specials == Specials::ieee ? all >> f.mantissa << f.mantissa : f.specials == Specials::all_ones ? all : all + 1;
}
// The code of NaN that code makes, or what takes its place.
constexpr uint32_t nan_code(const DTypeTraits &f) {
    if (f.specials == Specials::none) return sign_bit(f);
    return f.specials == Specials::ieee ? first_special(f) | uint32_t{1} << (f.mantissa - 1) : first_special(f);
}

constexpr Held held_as(DType type) { return traits_of(type).held; }
// A float that is only stored; f32 has all its values.
constexpr bool is_narrow_float(DType type) { return is_float(type) && !is_arithmetic(type); }
// A type of which machine code has the bits alone, in the low bits of a byte: no emitter converts it by itself.
constexpr bool is_coded(DType type) { return held_as(type) == Held::u8 && type != DType::u8; }
constexpr bool is_coded_float(DType type) { return is_float(type) && is_coded(type); }
// The largest double that is not above any value of a type of integers.
constexpr double highest_real(DType type) {
    const int64_t highest = traits_of(type).highest;
    return static_cast<double>(highest > int64_t{1} << 53 ? highest & ~int64_t{1023} : highest);
}
constexpr const char *name_of(DType type) { return traits_of(type).name; }  // "f32", …, "bool", "index"
DType dtype_named(const std::string &name);                                 // the inverse; UserError dtype.unknown

}  // namespace tessera

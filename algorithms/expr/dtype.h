// Element types. Arithmetic happens in f32, f64, i32, i64, bool and index; the narrow types are for storage and are
// converted by explicit casts.
//
// The table says what a type is. What else gives types a meaning has a switch over the enumeration without a default, so that a
// type that is added does not compile before it has one: its bits in memory (scalar.cpp), its register in the interpreter
// (evaluate/tape.cpp), its name and constants in each emitter, its number in the ABI (compiler/emit/spec.cpp).
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
    index,  // positions and extents; wide enough for any legal tensor (spans stay under 2^31 elements)
};

enum class DTypeKind : uint8_t { real, integer, truth, position };

struct DTypeTraits {
    DType type;
    const char *name;
    int bytes;  // of one stored element; 0: never stored
    DTypeKind kind;
    bool arithmetic;                  // may be an operand of an operation
    int mantissa = 0;                 // real: stored bits of it
    int exponent = 0;                 // real: bits of it
    int64_t lowest = 0, highest = 0;  // others: the range of values
};

inline constexpr std::array dtypes = {
    DTypeTraits{.type = DType::f32, .name = "f32", .bytes = 4, .kind = DTypeKind::real, .arithmetic = true, .mantissa = 23, .exponent = 8},
    DTypeTraits{.type = DType::f64, .name = "f64", .bytes = 8, .kind = DTypeKind::real, .arithmetic = true, .mantissa = 52, .exponent = 11},
    DTypeTraits{
        .type = DType::bf16, .name = "bf16", .bytes = 2, .kind = DTypeKind::real, .arithmetic = false, .mantissa = 7, .exponent = 8},
    DTypeTraits{.type = DType::f16, .name = "f16", .bytes = 2, .kind = DTypeKind::real, .arithmetic = false, .mantissa = 10, .exponent = 5},
    DTypeTraits{.type = DType::i8,
                .name = "i8",
                .bytes = 1,
                .kind = DTypeKind::integer,
                .arithmetic = false,
                .lowest = INT8_MIN,
                .highest = INT8_MAX},
    DTypeTraits{
        .type = DType::u8, .name = "u8", .bytes = 1, .kind = DTypeKind::integer, .arithmetic = false, .lowest = 0, .highest = UINT8_MAX},
    DTypeTraits{.type = DType::i32,
                .name = "i32",
                .bytes = 4,
                .kind = DTypeKind::integer,
                .arithmetic = true,
                .lowest = INT32_MIN,
                .highest = INT32_MAX},
    DTypeTraits{.type = DType::i64,
                .name = "i64",
                .bytes = 8,
                .kind = DTypeKind::integer,
                .arithmetic = true,
                .lowest = INT64_MIN,
                .highest = INT64_MAX},
    DTypeTraits{
        .type = DType::boolean, .name = "bool", .bytes = 1, .kind = DTypeKind::truth, .arithmetic = true, .lowest = 0, .highest = 1},
    DTypeTraits{.type = DType::index,
                .name = "index",
                .bytes = 0,
                .kind = DTypeKind::position,
                .arithmetic = true,
                .lowest = INT32_MIN,
                .highest = INT32_MAX},
};
static_assert(
    [] {
        for (size_t i = 0; i < dtypes.size(); i++)
            if (dtypes[i].type != static_cast<DType>(i)) return false;
        return dtypes.size() == static_cast<size_t>(DType::index) + 1;
    }(),
    "every type has its traits, in the order of the enumeration");

constexpr const DTypeTraits &traits_of(DType type) { return dtypes[static_cast<size_t>(type)]; }

int size_of(DType type);  // bytes of one stored element; index has none (throws InternalError)
constexpr bool is_float(DType type) { return traits_of(type).kind == DTypeKind::real; }
constexpr bool is_integer(DType type) { return traits_of(type).kind == DTypeKind::integer || traits_of(type).kind == DTypeKind::position; }
// May be an operand of an operation: f32, f64, i32, i64, boolean, index.
constexpr bool is_arithmetic(DType type) { return traits_of(type).arithmetic; }
// A float that is only stored; f32 has all its values.
constexpr bool is_narrow_float(DType type) { return is_float(type) && !is_arithmetic(type); }
// The largest double that is not above any value of a type of integers.
constexpr double highest_real(DType type) {
    const int64_t highest = traits_of(type).highest;
    return static_cast<double>(highest > int64_t{1} << 53 ? highest & ~int64_t{1023} : highest);
}
constexpr const char *name_of(DType type) { return traits_of(type).name; }  // "f32", …, "bool", "index"
DType dtype_named(const std::string &name);                                 // the inverse; UserError dtype.unknown

}  // namespace tessera

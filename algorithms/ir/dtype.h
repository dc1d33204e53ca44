// Element types. Arithmetic happens in f32, f64, i32, i64, bool and index; the narrow types are for storage and are
// converted by explicit casts.
#pragma once
#include <cstdint>
#include <string>

namespace tessera {

// is_float and is_arithmetic compare: floats stand first, and types that are only stored together, in the middle.
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

int size_of(DType type);  // bytes of one stored element; index has none (throws InternalError)
constexpr bool is_float(DType type) { return type <= DType::f16; }
constexpr bool is_integer(DType type) { return !is_float(type) && type != DType::boolean; }
// May be an operand of an operation: f32, f64, i32, i64, boolean, index.
constexpr bool is_arithmetic(DType type) { return type <= DType::f64 || type >= DType::i32; }
const char *name_of(DType type);             // "f32", …, "bool", "index"
DType dtype_named(const std::string &name);  // the inverse; UserError dtype.unknown

}  // namespace tessera

// The instructions of a tape (tape.h): an operation of scalar.h on one kind of register, or one of a few more.
#pragma once
#include "algorithms/expr/scalar.h"

namespace tessera {

enum class Kind : uint8_t { f32, f64, i64, i32, boolean };

constexpr uint16_t code(Op op, Kind kind) { return static_cast<uint16_t>(static_cast<int>(op) * 5 + static_cast<int>(kind)); }

enum : uint16_t {
    code_select = 5 * op_count,  // detail: type
    code_move,
    code_clamp,        // max(min(a, c - 1), b)
    code_load,         // detail: position of the access
    code_skip_unless,  // detail: how many instructions
    code_f32_to_f64,
    code_f64_to_f32,
    code_f32_to_bf16,
    code_f32_to_f16,
    code_integer_to_f32,
    code_integer_to_f64,
    code_f32_bits,
    code_f32_of_bits,
    code_f64_bits,  // either way
    code_convert,  // detail: source type | target type << 6 | rounding << 12 | saturate << 14
    code_bitcast,  // between u8 and a float of one byte; detail: source type | target type << 6
};

}  // namespace tessera

// Conversions that no emitter has: to and from floats of one byte, and to any narrow float with a rounding of the cast's own. Each is an
// expression over f32 and integers, derived from the format's row in the table of types (dtype.h), as a function with a name is one over
// others. So loops, tiles and emitters see integers where an algorithm has formats. `convert` (scalar.h) says what they give.
#pragma once
#include "algorithms/expr/expr.h"

namespace tessera {

// The expression with each cast that `is_expanded` says in other operations. A shared node is expanded once.
Expr expand_conversions(const Expr &e);
// The expression as loops have it: without functions, and then without such casts.
Expr in_operations(const Expr &e);

// The code of a value of a type of codes, as an i32. A half byte that was cut out of its byte for it is not cast to a byte and back.
Expr code_in(const Expr &stored);

// x in f32, rounded at random to a narrow float: with the next value away from zero as often as x is near to it. The magnitude's bits that
// the format cannot hold, as a fraction of 2^32 cut to an integer, plus the low 32 bits of `word`, an i64: a carry rounds away. What
// exceeds the largest number is as in a cast with this saturation. UserError expr.cast where x is no f32 or the type no narrow float.
Expr round_stochastic(const Expr &x, DType type, const Expr &word, bool saturate = false);

// x of f32 or f64, or a zero of its sign where it is less than the least normal number of the float type `of`: "flush_subnormals_f16".
// NaN stays. UserError functions.type for another x, expr.cast where `of` is no float or has no zero.
Expr flush_subnormals(const Expr &x, DType of);

// `sum` of f32, or a zero of its sign where the sum that it was rounded from is tiny: where |sum| is at most the least normal number and
// |scaled|, the same sum times 2^60 rounded, is below that number times 2^60. A sum that is less than the least normal number by at most
// half of a subnormal step rounds up to it; scaled, it shows that it was less: "flush_tiny_sum".
Expr flush_tiny_sum(const Expr &sum, const Expr &scaled);

// a * b + c of f32 with one rounding to nearest even, where subnormal operands and tiny sums are zeros of their sign. A sum is tiny if it
// is less than 2^-126 when it is rounded to 24 bits with an exponent that has no end: what x86 does in vdpbf16ps and tdpbf16ps.
Expr flushed_fma(const Expr &a, const Expr &b, const Expr &c);

// x of f32, rounded to nearest even to the 10 bits of mantissa that tensor cores take of a number in TF32 (NVIDIA, PTX ISA): "round_tf32".
// UserError functions.type for another type.
Expr round_tf32(const Expr &x);

}  // namespace tessera

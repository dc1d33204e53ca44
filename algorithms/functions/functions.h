// Elementary functions and activations: the same bits on every target, with stated accuracy. Each is a node with a name (function.h),
// whose definition is made of fma and bits. All take and give f32 or f64 (UserError functions.type otherwise).
//
// Errors are the largest |result - exact| in units in the last place of the exact result (subnormal results: of the
// smallest subnormal). In f32 they are measured over every one of the 2^32 values against libm in double; in f64, over at least
// 280000 random points against libm in long double. Those of two arguments are measured over random pairs, and over pairs that are near
// 1, near overflow and underflow, or exact. NaN gives NaN everywhere, subnormal inputs count in full, and results
// underflow gradually except where a flush to 0 is stated. No operation traps, and no float is cast to an integer.
#pragma once
#include <vector>

#include "algorithms/expr/function.h"

namespace tessera {

// f32 0.892 ULP, f64 0.84. -inf -> 0, inf -> inf; overflow to inf, gradual underflow. 18 operations.
Expr exp(Expr x);

// exp for x <= 0, of which sums are made: below 2^-126.5 (f64: 2^-1022.5) it gives 0. Elsewhere exp's bits, and -inf -> 0.
// Above 88 (f64: 709) the result is unspecified. 13 operations.
Expr exp_nonpositive(Expr x);

// f32 0.886 ULP, f64 0.81. 0 and -0 -> -inf, below 0 -> NaN, inf -> inf.
Expr log(Expr x);

// exp(x) - 1, as exact near 0 as elsewhere: f32 1.405 ULP, f64 1.13. -inf -> -1, inf -> inf, -0 -> -0, a subnormal gives itself;
// overflow to inf. 25 operations.
Expr expm1(Expr x);

// log(1 + x), as exact near 0 as elsewhere: f32 0.935 ULP, f64 0.95. -1 -> -inf, below NaN, inf -> inf, -0 -> -0, a subnormal gives
// itself. 44 operations.
Expr log1p(Expr x);

// x^y: f32 0.80 ULP, f64 0.87, and exact where the result is a value of its type. Special cases are those of C's Annex F:
// y = 0 -> 1 and x = 1 -> 1 whatever the other is, NaN too; -1 to +-inf -> 1; x < 0 has a value where y is whole, and NaN elsewhere;
// 0 and inf by the signs of both and by whether y is odd. Overflow to +-inf, gradual underflow. 123 operations: a whole power that the
// program knows is the second's, and takes fewer.
Expr pow(Expr x, Expr y);

// x^n by repeated squaring, 2 log2(|n|) products at most, each rounded: x * x for 2, (x * x) * x for 3; for n < 0 the reciprocal of that.
// n = 0 -> 1. Also of i32 and i64, which wrap (UserError functions.type for n < 0 there).
Expr pow(Expr x, int n);

// x in radians, |x| <= 2^20 in f32 and |x| <= 2^45 in f64. Beyond, and for +-inf, NaN: a reduction for all would cost every result more
// than the function itself. f32 0.906 ULP, f64 0.79. Odd, so sin(-0) = -0; a subnormal gives itself. 46 operations.
Expr sin(Expr x);

// x in radians, in the range of sin, NaN beyond: f32 0.900 ULP, f64 0.82. Even. 45 operations.
Expr cos(Expr x);

// f32 1.203 ULP, f64 1.09. Odd, so atan(-0) = -0; +-pi / 2, rounded, at +-inf. 29 operations, one of them a division.
Expr atan(Expr x);

// The angle of the point (x, y), -pi .. pi: f32 1.54 ULP, f64 1.46. Special cases are those of C's Annex F: the sign is y's, of a 0 too;
// x = -0 is left of the origin, so atan2(0, -0) = pi and atan2(0, 0) = 0; two infinities give odd multiples of pi / 4. NaN where either is.
// Gradual underflow. 39 operations, one of them a division.
Expr atan2(Expr y, Expr x);

// f32 1.184 ULP, f64 1.23. Odd, so erf(-0) = -0; +-1 at and near +-inf, never beyond.
Expr erf(Expr x);

// 1 - erf(x), to the same relative error down to its underflow: f32 1.421 ULP, f64 1.50. -inf -> 2, inf -> 0; gradual underflow, and 0 from
// 10.06 (f64: 27.3) up. 81 operations, two of them divisions.
Expr erfc(Expr x);

// f32 1.371 ULP, f64 1.30. Odd, so tanh(-0) = -0; +-1 at and near +-inf, never beyond.
Expr tanh(Expr x);

// 1 / (1 + exp(-x)): f32 1.647 ULP, f64 1.56. -inf -> 0, inf -> 1; gradual underflow.
Expr sigmoid(Expr x);

// 1 / sqrt(x): f32 0.850 ULP, f64 0.85. 0 -> inf, -0 -> -inf, below 0 -> NaN, inf -> 0. One division, one square root.
Expr rsqrt(Expr x);

// max(x, 0), exact. NaN -> NaN (it is no maximum of a number), -0 -> -0, -inf -> 0.
Expr relu(Expr x);

// log(1 + exp(x)): f32 1.098 ULP, f64 1.03. exp(x) for x far below 0, x far above. -inf -> 0, inf -> inf; gradual underflow.
// 77 operations.
Expr softplus(Expr x);

// x Phi(x), Phi the normal distribution function, exact to rounding (by erfc, not the tanh approximation).
// f32: 1.982 ULP for x >= -4.5 and 2.571 for x >= -5; below, within 2e-8 of the exact value (there under 1.5e-6 in
// size), and 0 from -13.08 down. f64: 5.3 ULP for x >= -37.5, and 0 from -37.66 down. -inf -> 0, inf -> inf, -0 -> -0.
Expr gelu(Expr x);

// x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)) = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
// (Hendrycks, Gimpel 2016), f32 2.313 ULP of that formula, f64 1.94. -inf -> -0, inf -> inf, -0 -> -0; gradual underflow.
Expr gelu_tanh(Expr x);

// x sigmoid(x): f32 2.394 ULP, f64 2.01. -inf -> -0, inf -> inf, -0 -> -0; gradual underflow.
Expr silu(Expr x);

// x, bit for bit, with a derivative of 0: a gradient takes it for a constant. No operation.
Expr stop_gradient(Expr x);

// x, bit for bit, with the derivative of `by`: of what rounds or clips, that of what went in (Bengio et al. 2013). No operation.
Expr straight_through(Expr x, Expr by);

// Functions of fewer bits have names of their own, "exp12" of exp, and are what policies license (transform/licensed.h). In f32 a relative
// error is below 2^-12; in f64 they are the functions whose names they begin with. Measured over every 211th f32:
//   exp12, exp_nonpositive12  2^-13.6; below 2^-125.5 they give 0
//   log12                     2^-14.2
//   tanh12, erf12             2^-12.7, 2^-12.2; +-1 from 5.3 and 2.9 up
//   sigmoid12                 2^-13.1; below -86 it gives less than 2^-124
//   silu12, gelu_tanh12       2^-13.1; from where results are below 1e-35 on, they are within that
//   gelu12                    2^-13.2 |x|, so 2^-12.2 of a positive x's result; 0 from -4.11 down
//   rsqrt_newton              1.3 ULP; no division and no square root
// All are odd or even as those are, and give their limits at +-inf within that; NaN gives NaN.
//
// The one that computes f in fewer bits, or null where there is none. `f` is a standard function.
FunctionRef narrower_function(const Function &f);

// All of the above with a definition: those of one argument, then those of two. pow with a whole power is made of products and has none.
const std::vector<FunctionRef> &standard_functions();
// The one of that name, or null.
const FunctionRef *find_function(const std::string &name);

}  // namespace tessera

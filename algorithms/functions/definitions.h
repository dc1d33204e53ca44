// What the functions of functions.h are made of: fma, bits and comparisons, so the same bits on every target. Arguments are f32 or f64.
#pragma once
#include "algorithms/expr/expr.h"

namespace tessera::definitions {

Expr exp(Expr x);
Expr exp_nonpositive(Expr x);
Expr log(Expr x);
Expr expm1(Expr x);
Expr log1p(Expr x);
Expr sin(Expr x);
Expr cos(Expr x);
Expr atan(Expr x);
Expr atan2(Expr y, Expr x);
Expr pow(Expr x, Expr y);
Expr erf(Expr x);
Expr erfc(Expr x);
Expr tanh(Expr x);
Expr sigmoid(Expr x);
Expr rsqrt(Expr x);
Expr relu(Expr x);
Expr softplus(Expr x);
Expr gelu(Expr x);
Expr gelu_tanh(Expr x);
Expr silu(Expr x);

// These take f32 alone.
Expr exp12(Expr x);
Expr exp_nonpositive12(Expr x);
Expr log12(Expr x);
Expr tanh12(Expr x);
Expr erf12(Expr x);
Expr sigmoid12(Expr x);
Expr gelu12(Expr x);
Expr gelu_tanh12(Expr x);
Expr silu12(Expr x);
Expr rsqrt_newton(Expr x);

}  // namespace tessera::definitions

// Elementary functions and activations as expressions over fma: the same bits on every target, with stated accuracy.
// All take and give f32 or f64 (UserError functions.type otherwise); each states its largest error in f32, tested over
// every f32 value against a double-precision reference.
#pragma once
#include "algorithms/expr.h"

namespace tessera {

Expr exp(Expr x);
Expr log(Expr x);
Expr erf(Expr x);
Expr tanh(Expr x);
Expr sigmoid(Expr x);
Expr rsqrt(Expr x);
Expr relu(Expr x);
Expr gelu(Expr x);       // x * Phi(x), by erf
Expr gelu_tanh(Expr x);  // the tanh approximation (Hendrycks, Gimpel 2016)
Expr silu(Expr x);

}  // namespace tessera

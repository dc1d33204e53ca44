#include "algorithms/functions/arithmetic.h"
#include "algorithms/functions/definitions.h"

namespace tessera::definitions {

namespace {

// numerator / denominator = 1 / (1 + exp(x)) for x above -sigmoid_high, both scaled by a power of two of at most 1, so
// that neither overflows and a small result rounds once, in the division.
struct Ratio {
    Expr numerator, denominator;
};
Ratio logistic(const Arithmetic &k, const Exponent &x) {
    Power p = exp_parts(k, 2 * k.f.bias, x);
    Expr one = k.bits((k.f.rounder_bits >> 1) + k.f.bias);
    Expr half = max(one, operation(Op::shr, {p.exponent, k.bits(1)}));
    Expr scale = k.power_of_two(k.bits(2 * k.f.bias) - half);
    return {scale, scale + p.mantissa * k.power_of_two(p.exponent - half)};
}

}  // namespace

Expr tanh(Expr x) {
    Arithmetic k{format_of(x)};
    Expr magnitude = abs(x), z = k.at_most(k.f.tanh_high, magnitude);
    Expr square = z * z;
    Expr small = fma(magnitude * square, k.polynomial(k.f.tanh, square), magnitude);
    Expr twice_z = z + z;
    Expr large = k(1) - k(2) / (exp_near(k, Exponent(twice_z)) + k(1));
    return k.with_sign_of(x, select(z < k(0.625), small, large));
}

// With e = exp(-|x|), sigmoid is 1 - e / (1 + e), or e times that: the quotient's error counts for at most half.
Expr sigmoid(Expr x) {
    Arithmetic k{format_of(x)};
    Expr e = definitions::exp(-abs(x));
    Expr factor = select(x < k(0), e, k(1));
    return fma(-factor, e / (k(1) + e), factor);
}

Expr relu(Expr x) {
    Arithmetic k{format_of(x)};
    return max(x, k(0));  // of two zeros x
}

// x sigmoid(v), v = 2 sqrt(2 / pi) (x + 0.044715 x^3). An error in v is a relative error in the result, so v is carried
// in two parts.
Expr gelu_tanh(Expr x) {
    Arithmetic k{format_of(x)};
    Expr y = k.at_least(k.f.gelu_tanh_low, x), z = k.at_most(k.f.gelu_tanh_high, y);
    Expr square = z * z;
    Expr square_low = fma(z, z, -square);
    Expr linear = k(k.f.linear_high), cubic = k(k.f.cubic_high);
    Expr w = fma(cubic, square, linear);
    Expr w_low = fma(cubic, square_low, fma(k(k.f.cubic_low), square, k(k.f.linear_low)));
    w_low = fma(cubic, square, linear - w) + w_low;
    Expr minus_v = -z * w;
    Expr minus_v_low = -fma(z, w_low, fma(z, w, minus_v));
    Ratio r = logistic(k, {minus_v, minus_v, {}, minus_v_low});
    return y * r.numerator / r.denominator;
}

Expr silu(Expr x) {
    Arithmetic k{format_of(x)};
    Expr y = k.at_least(k.f.silu_low, x);
    Ratio r = logistic(k, Exponent(k.at_least(-k.f.sigmoid_high, -y)));
    return y * r.numerator / r.denominator;
}

}  // namespace tessera::definitions

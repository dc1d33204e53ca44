#include <cmath>

#include "algorithms/functions/arithmetic.h"
#include "algorithms/functions/definitions.h"

namespace tessera::definitions {

namespace {

// 2 * 2^r, |r| <= 1/2, relative [2^-13.7].
const Coefficients exp2_short = {1.999856147113432, 1.3865219715996322, 0.4852222441050743, 0.1103433344408904};
// log(1 + t) / t, sqrt(1/2) <= 1 + t <= sqrt(2), relative [2^-14.2].
const Coefficients log_short = {0.9999661812365626, -0.4994506487307737, 0.33638885086483034, -0.2709459737331152, 0.17658045898022767};
// tanh(z) / z and erf(z) / z in z^2, each as a quotient, relative [2^-18.2 for z <= 5.3, 2^-14.5 for z <= 2.9].
const Coefficients tanh_numerator = {0.9999968769225234, 0.1161032550497091, 0.0016005243347899393};
const Coefficients tanh_denominator = {1, 0.44941300518940724, 0.018101702900664707, 6.193877510230079e-05};
const Coefficients erf_numerator = {1.1283322659359158, 0.17995477379504815, 0.02960582117468476};
const Coefficients erf_denominator = {1, 0.49214221807516734, 0.09202910247036074, 0.0035081864064073127};
// By which they are scaled, so that they reach 1 at the end of those ranges.
const double tanh_scale = 1 + 1.0e-4, erf_scale = 1 + 1.3e-4;

// exp(y) for -87.5 <= y: 0 below 2^-125.5, because there the power is of exponent 0.
Expr exp_of(const Arithmetic &k, const Expr &y) {
    const Expr rounder = k(k.f.rounder + k.f.bias - 1);
    const Expr sum = fma(y, k(k.f.log2e), rounder);
    const Expr r = fma(y, k(k.f.log2e), rounder - sum);
    return k.polynomial(exp2_short, r) * k.power_of_two(bitcast(k.f.bits, sum));
}

// 1 / x for 2^-125 <= x <= 2^125 [2^-14.5]: a linear guess of the bits, then Newton's step twice, with constants that balance its errors.
Expr reciprocal_of(const Arithmetic &k, const Expr &x) {
    Expr y = bitcast(k.f.real, k.bits(0x7ecb20d8) - bitcast(k.f.bits, x));
    y = y * fma(-x, y, k(2.04249787));
    return y * fma(-x, y, k(2.00004005));
}

Expr odd_quotient(const Arithmetic &k, const Expr &x, double end, const Coefficients &numerator, const Coefficients &denominator,
                  double scale) {
    const Expr z = k.at_least(-end, k.at_most(end, x)), square = z * z;
    Coefficients scaled = numerator;
    for (double &c : scaled) c *= scale;
    const Expr y = z * k.polynomial(scaled, square) * reciprocal_of(k, k.polynomial(denominator, square));
    return k.at_least(-1, k.at_most(1, y));
}

Expr sigmoid_of(const Arithmetic &k, const Expr &x) { return reciprocal_of(k, k(1) + exp_of(k, k.at_least(-87.5, -k.at_least(-86, x)))); }

}  // namespace

Expr exp12(Expr x) {
    Arithmetic k{format_of(x)};
    return exp_of(k, k.at_least(-87.5, k.at_most(88.8, x)));
}

Expr exp_nonpositive12(Expr x) {
    Arithmetic k{format_of(x)};
    return exp_of(k, k.at_least(-87.5, x));
}

Expr log12(Expr x) {
    Arithmetic k{format_of(x)};
    const Expr subnormal = x < k(k.f.min_normal);
    const Expr bits = bitcast(k.f.bits, select(subnormal, x * k(k.f.subnormal_scale), x));
    const Expr e = operation(Op::shr, {bits - k.bits(k.f.sqrt_half_bits), k.bits(k.f.mantissa)});
    const Expr t = bitcast(k.f.real, bits - operation(Op::shl, {e, k.bits(k.f.mantissa)})) - k(1);
    const Expr n = cast(k.f.real, e) + select(subnormal, k(k.f.subnormal_exponent), k(0));
    const Expr finite = fma(n, k(k.f.ln2_high + k.f.ln2_low), t * k.polynomial(log_short, t));
    return select(k(0) < x, select(x < k(INFINITY), finite, x), select(x == k(0), k(-INFINITY), k(NAN)));
}

Expr tanh12(Expr x) {
    Arithmetic k{format_of(x)};
    return odd_quotient(k, x, 5.3, tanh_numerator, tanh_denominator, tanh_scale);
}

Expr erf12(Expr x) {
    Arithmetic k{format_of(x)};
    return odd_quotient(k, x, 2.9, erf_numerator, erf_denominator, erf_scale);
}

Expr sigmoid12(Expr x) {
    Arithmetic k{format_of(x)};
    return sigmoid_of(k, x);
}

// Below -8 there is nothing left of it, and a half of -inf would be NaN.
Expr gelu12(Expr x) {
    Arithmetic k{format_of(x)};
    const Expr y = k.at_least(-8, x), half = y * k(0.5);
    const Expr phi = odd_quotient(k, y * k(0.70710678118654752440), 2.9, erf_numerator, erf_denominator, erf_scale);
    return fma(half, phi, half);
}

Expr gelu_tanh12(Expr x) {
    Arithmetic k{format_of(x)};
    const Expr y = k.at_least(-10, x);
    const double linear = k.f.linear_high + k.f.linear_low, cubic = k.f.cubic_high + k.f.cubic_low;
    return y * sigmoid_of(k, y * fma(y * y, k(cubic), k(linear)));
}

Expr silu12(Expr x) {
    Arithmetic k{format_of(x)};
    const Expr y = k.at_least(-86, x);
    return y * sigmoid_of(k, y);
}

// Newton's steps from a linear guess of the bits of 1 / sqrt(x): each squares the error, 3.5 % at first.
Expr rsqrt_newton(Expr x) {
    Arithmetic k{format_of(x)};
    const Expr subnormal = x < k(k.f.min_normal);
    const Expr z = select(subnormal, x * k(0x1p24), x), half = z * k(0.5);
    Expr y = bitcast(k.f.real, k.bits(0x5f3759df) - operation(Op::shr, {bitcast(k.f.bits, z), k.bits(1)}));
    for (int step = 0; step < 2; step++) y = y * fma(-(half * y), y, k(1.5));
    y = fma(y * k(0.5), fma(-(z * y), y, k(1)), y) * select(subnormal, k(0x1p12), k(1));
    const Expr positive = select(x < k(INFINITY), y, select(x == k(INFINITY), k(0), x));
    return select(k(0) < x, positive, select(x == k(0), k.with_sign_of(x, k(INFINITY)), k(NAN)));
}

}  // namespace tessera::definitions

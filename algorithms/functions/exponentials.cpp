#include <cmath>

#include "algorithms/functions/arithmetic.h"
#include "algorithms/functions/definitions.h"

namespace tessera::definitions {

Expr exp(Expr x) {
    Arithmetic k{format_of(x)};
    Expr y = k.at_least(k.f.exp_low, k.at_most(k.f.exp_high, x));
    Power p = exp_parts(k, 2 * k.f.bias, Exponent(y));
    Expr half = operation(Op::shr, {p.exponent, k.bits(1)});
    return p.mantissa * k.power_of_two(half) * k.power_of_two(p.exponent - half);
}

Expr exp_nonpositive(Expr x) {
    Arithmetic k{format_of(x)};
    return exp_near(k, Exponent(k.at_least(k.f.exp_flush, x)));
}

Expr log(Expr x) {
    Arithmetic k{format_of(x)};
    Expr subnormal = x < k(k.f.min_normal);
    Expr bits = bitcast(k.f.bits, select(subnormal, x * k(k.f.subnormal_scale), x));
    Expr e = operation(Op::shr, {bits - k.bits(k.f.sqrt_half_bits), k.bits(k.f.mantissa)});
    Expr m = bitcast(k.f.real, bits - operation(Op::shl, {e, k.bits(k.f.mantissa)}));
    Expr n = cast(k.f.real, e) + select(subnormal, k(k.f.subnormal_exponent), k(0));
    Expr t = m - k(1), square = t * t;
    Expr rest = fma(n, k(k.f.ln2_low), square * fma(k.polynomial(k.f.log, t), t, k(-0.5)));
    Expr finite = fma(n, k(k.f.ln2_high), t + rest);
    return select(k(0) < x, select(x < k(INFINITY), finite, x), select(x == k(0), k(-INFINITY), k(NAN)));
}

// 2^n (expm1(r) + 1) - 1, with half of the power so that it does not overflow. Below 0.5 no power is taken out, because there the
// subtraction would cancel.
Expr expm1(Expr x) {
    Arithmetic k{format_of(x)};
    Expr y = k.at_least(k.of(-20.0, -40.0), k.at_most(k.f.exp_high, x));
    Expr near = abs(y) < k(0.5);
    Expr rounder = k(k.f.rounder + k.f.bias - 1);
    Expr sum = fma(select(near, k(0), y), k(k.f.log2e), rounder), n = sum - rounder;
    Expr r = fma(n, k(-k.f.ln2_low), fma(n, k(-k.f.ln2_high), y));
    Expr p = r + expm1_rest(k, {r, k(0)});
    Expr power = k.power_of_two(bitcast(k.f.bits, sum));
    Expr half = fma(p, power, power - k(0.5));
    return k.with_sign_of(x, select(near, p, half + half));
}

Expr log1p(Expr x) {
    Arithmetic k{format_of(x)};
    Parts log = log_parts(k, sum_of(k(1), x));
    Expr inside = select(x < k(INFINITY), log.head + log.tail, x);
    return k.with_sign_of(x, select(k(-1) < x, inside, select(x == k(-1), k(-INFINITY), k(NAN))));
}

// max(x, 0) + log1p(exp(-|x|)). The exponential keeps what is below its last place: it would be seen in the result.
Expr softplus(Expr x) {
    Arithmetic k{format_of(x)};
    const double far = k.of(20.0, 40.0);  // from here the sum is its larger term
    Expr y = k.at_least(k.f.exp_low, -abs(x));
    ExpReduction e = exp_reduction(k, 2 * k.f.bias, y);
    Parts one_and = ordered_sum(k(1), e.r.head);
    Expr rest = one_and.tail + expm1_rest(k, e.r);
    Expr half = k.half_of(e.exponent), power = k.power_of_two(half), other = k.power_of_two(e.exponent - half);
    Expr exponential = (one_and.head + rest) * power * other;
    Expr scale = power * other;
    Parts u = ordered_sum(k(1), one_and.head * scale);
    Parts log = log_parts(k, {u.head, fma(rest, scale, u.tail)});
    Parts sum = sum_of(max(x, k(0)), log.head);
    Expr near = sum.head + (sum.tail + log.tail);
    return select(x < k(far), select(x < k(-far), exponential, near), x);
}

}  // namespace tessera::definitions

#include <cmath>

#include "algorithms/functions/arithmetic.h"
#include "algorithms/functions/definitions.h"

namespace tessera::definitions {

namespace {

// log2(e) 2 s (1 + s^2 / 3 + ...) with s = (m - 1) / (m + 1).
struct Powers {
    double scale_high, scale_low;  // 2 log2(e)
    double third_high, third_low;  // a third of it
    Coefficients log2;             // (log2(m) / s - scale - third s^2) / s^4 in s^2, sqrt(1/2) <= m <= sqrt(2), relative in log2(m)
    double log_2_high, log_2_low;
    Coefficients exp2;   // (2^r - 1 - r log(2)) / r^2, |r| <= 0.5, relative in 2^r
    double least, most;  // exponents whose power of two rounds to 0 and overflows
};

const Powers powers_single = {
    .scale_high = 0x1.715476p+1,
    .scale_low = 0x1.4ae0cp-25,
    .third_high = 0x1.ec709ep-1,
    .third_low = -0x1.e2fe02p-28,
    .log2 = {0.57708019, 0.411849707, 0.337829024},  // [2^-36.8]
    .log_2_high = 0x1.62e43p-1,
    .log_2_low = -0x1.05c61p-29,
    // [2^-31.3]
    .exp2 = {0.240226507, 0.0555040501, 0.00961808302, 0.00133402145, 0.000154539317, 1.35082037e-5},
    .least = -152,
    .most = 129,
};

const Powers powers_twice = {
    .scale_high = 0x1.71547652b82fep+1,
    .scale_low = 0x1.777d0ffda0d24p-55,
    .third_high = 0x1.ec709dc3a03fdp-1,
    .third_low = 0x1.d27f05548af0cp-55,
    // [2^-65.8]
    .log2 = {0.57707801635558509, 0.41219858311137153, 0.32059889790757817, 0.26230819920573639, 0.22195223753731219, 0.19240245123306421,
             0.1684307345182541, 0.17297599373867162},
    .log_2_high = 0x1.62e42fefa39efp-1,
    .log_2_low = 0x1.abc9e3b39803fp-56,
    // [2^-57.4]
    .exp2 = {0.24022650695910122, 0.055504108664820744, 0.0096181291075969049, 0.0013333558146684224, 0.00015403530454170542,
             1.5252733548691593e-5, 1.3215436554978168e-6, 1.0178183923410339e-7, 7.0735890295535386e-9, 4.4364092149112622e-10},
    .least = -1076,
    .most = 1025,
};

// log2(x) for x above 0 and below inf, to about twice the precision.
Parts log2_parts(const Arithmetic &k, const Expr &x) {
    const Powers &c = k.of(powers_single, powers_twice);
    Expr subnormal = x < k(k.f.min_normal);
    Expr bits = bitcast(k.f.bits, select(subnormal, x * k(k.f.subnormal_scale), x));
    Expr e = operation(Op::shr, {bits - k.bits(k.f.sqrt_half_bits), k.bits(k.f.mantissa)});
    Expr m = bitcast(k.f.real, bits - operation(Op::shl, {e, k.bits(k.f.mantissa)}));
    Expr n = cast(k.f.real, e) + select(subnormal, k(k.f.subnormal_exponent), k(0));

    // s in two parts.
    Expr above = m - k(1);
    Parts divisor = sum_of(m, k(1));
    Expr inverse = k(1) / divisor.head, s = above * inverse;
    Expr s_low = fma(-s, divisor.tail, fma(-s, divisor.head, above)) * inverse;
    // scale + third s^2 + ..., whose first two terms matter beyond the last place.
    Parts square = product_of(s, s);
    Expr square_low = fma(s + s, s_low, square.tail);
    Parts third = product_of(square.head, k(c.third_high));
    Expr rest =
        fma(square.head * square.head, k.polynomial(c.log2, square.head), fma(square_low, k(c.third_high), square.head * k(c.third_low)));
    Parts factor = ordered_sum(k(c.scale_high), third.head);
    Expr factor_low = factor.tail + (third.tail + (rest + k(c.scale_low)));
    Parts log = product_of(s, factor.head);
    Parts sum = ordered_sum(n, log.head);
    return ordered_sum(sum.head, sum.tail + (log.tail + fma(s_low, factor.head, s * factor_low)));
}

// 2^x, where only the sum's last operation rounds visibly: powers that are exact come out so.
Expr exp2_of(const Arithmetic &k, const Parts &x) {
    const Powers &c = k.of(powers_single, powers_twice);
    Expr bounded_x = k.at_least(c.least, k.at_most(c.most, x.head));
    Expr low = select(bounded_x == x.head, x.tail, k(0));
    Expr rounder = k(k.f.rounder + 2 * k.f.bias), sum = bounded_x + rounder;
    Expr r = bounded_x - (sum - rounder);
    Parts linear = product_of(r, k(c.log_2_high));
    Expr linear_low = fma(r, k(c.log_2_low), linear.tail);
    Parts one_and = ordered_sum(k(1), linear.head);
    Expr rest = fma(r * r, k.polynomial(c.exp2, r), linear_low) + one_and.tail;
    Expr with_low = fma(low * k(c.log_2_high), one_and.head + rest, rest);
    return times_power(k, one_and.head + with_low, bitcast(k.f.bits, sum));
}

}  // namespace

// The square root halves the quotient's error, which it would not as a divisor. Scaling keeps the quotient normal.
Expr rsqrt(Expr x) {
    Arithmetic k{format_of(x)};
    Expr large = k(1) <= abs(x);
    double scale = k.f.rsqrt_scale;
    Expr bounded_x = k.at_least(-1, x);  // -inf must give NaN, and its quotient is -0
    Expr quotient = k(1) / (bounded_x * select(large, k(1 / (scale * scale)), k(scale * scale)));
    return select(x == k(0), quotient, sqrt(quotient) * select(large, k(1 / scale), k(scale)));
}

// Exact multiples aside, the result is exp2 of y log2(x), whose error counts as many units as y log2(x) has: both are carried in two parts.
// Zeros and infinities go through as logarithms of -inf and inf.
Expr pow(Expr x, Expr y) {
    Arithmetic k{format_of(x)};
    Expr magnitude = abs(x);
    Parts log = log2_parts(k, magnitude);
    Expr head = select(magnitude == k(0), k(-INFINITY), select(magnitude < k(INFINITY), log.head, magnitude));
    // A y so large gives 0, 1 or inf as it is.
    const double far = k.of(0x1p34, 0x1p66);
    Expr near_y = k.at_least(-far, k.at_most(far, y));
    Expr power = exp2_of(k, {near_y * head, fma(near_y, head, -(near_y * head)) + near_y * log.tail});

    Expr down = floor(y), half = y * k(0.5);
    Expr is_whole = down == y, is_odd = is_whole && floor(half) != half;
    Expr sign = operation(Op::bit_and, {bitcast(k.f.bits, x), select(is_odd, k.bits(k.f.sign), k.bits(0))});
    Expr signed_power = bitcast(k.f.real, operation(Op::bit_or, {bitcast(k.f.bits, power), sign}));
    Expr has_value = is_whole || !(x < k(0) && k(-INFINITY) < x);
    return select(y == k(0) || x == k(1), k(1), select(has_value, signed_power, select(y != y, y, k(NAN))));
}

}  // namespace tessera::definitions

#include <cmath>

#include "algorithms/functions/arithmetic.h"
#include "algorithms/functions/definitions.h"

namespace tessera::definitions {

namespace {

struct Trigonometry {
    double two_over_pi;
    double half_pi_high, half_pi_middle, half_pi_low;  // pi / 2 in three parts
    double limit;                                      // beyond, sin and cos give NaN
    Coefficients sin;                                  // (sin(r) / r - 1) / r^2 in r^2, |r| <= 0.8, relative
    Coefficients cos;                                  // (cos(r) - 1 + r^2 / 2) / r^4 in r^2, |r| <= 0.8, relative in cos(r)
    Coefficients atan;                                 // (atan(t) / t - 1) / t^2 in t^2, 0 <= t <= 1, relative in atan(t)
};

const Trigonometry trigonometry_single = {
    .two_over_pi = 0.636619772367581343,
    .half_pi_high = 0x1.921fb6p+0,
    .half_pi_middle = -0x1.777a5cp-25,
    .half_pi_low = -0x1.ee59dap-50,
    .limit = 0x1p20,
    // [2^-27.4]
    .sin = {-0.166666508, 0.00833192468, -0.000194841006},
    // [2^-32.3]
    .cos = {0.0416666381, -0.00138869591, 2.43936556e-5},
    // [2^-28.5]
    .atan = {-0.333332986, 0.199985296, -0.142640144, 0.109508611, -0.0839920714, 0.057878837, -0.0310934763, 0.0108662266, -0.00178213115},
};

const Trigonometry trigonometry_twice = {
    .two_over_pi = 0.636619772367581343,
    .half_pi_high = 0x1.921fb54442d18p+0,
    .half_pi_middle = 0x1.1a62633145c07p-54,
    .half_pi_low = -1.4973849048591833e-33,
    .limit = 0x1p45,
    // [2^-56.7]
    .sin = {-0.16666666666666621, 0.0083333333333198562, -0.00019841269827738475, 2.7557312967641819e-6, -2.5050643896594542e-8,
            1.5890137264052121e-10},
    // [2^-62.8]
    .cos = {0.041666666666666574, -0.0013888888888869794, 2.4801587286797371e-5, -2.7557313581634851e-7, 2.0875619148977652e-9,
            -1.1354288525180197e-11},
    // [2^-55.4]
    .atan = {-0.33333333333333071,  0.19999999999951501,    -0.142857142825772,     0.1111111100708246,      -0.090909070039139256,
             0.076922798493606087,  -0.066664041350415454,  0.058805282513765315,   -0.052535204062513226,   0.04722328245214117,
             -0.042191941643834135, 0.036642210399877417,   -0.029904319330417418,  0.02198540508335543,     -0.013901068444892766,
             0.0071968565408586449, -0.0028850976052259038, 0.00083138434175270145, -0.00015217427083594976, 1.3226408128741789e-5},
};

// x = quarter pi / 2 + r, |r| <= 0.8. The product with the first part of pi / 2 is fused, and what it leaves of x is exact. What the sum
// with the second one's rounds away goes on with the third: near a multiple of pi / 2 it is all there is.
struct Turn {
    Expr quarter;  // an integer, in the low bits
    Parts r;
};
Turn turn_of(const Arithmetic &k, const Trigonometry &c, const Expr &x) {
    Expr rounder = k(k.f.rounder), sum = fma(x, k(c.two_over_pi), rounder), n = sum - rounder;
    Parts middle = product_of(n, k(-c.half_pi_middle));
    Parts left = sum_of(fma(n, k(-c.half_pi_high), x), middle.head);
    return {bitcast(k.f.bits, sum), ordered_sum(left.head, left.tail + fma(n, k(-c.half_pi_low), middle.tail))};
}

Expr sine(const Arithmetic &k, const Trigonometry &c, const Parts &r) {
    Expr square = r.head * r.head;
    return r.head + fma(r.head * square, k.polynomial(c.sin, square), r.tail);
}

Expr cosine(const Arithmetic &k, const Trigonometry &c, const Parts &r) {
    Expr square = r.head * r.head;
    Parts sum = ordered_sum(k(1), k(-0.5) * square);
    return sum.head + fma(square * square, k.polynomial(c.cos, square), fma(-r.head, r.tail, sum.tail));
}

// sin(magnitude + shift pi / 2).
Expr sine_after(const Arithmetic &k, const Expr &magnitude, int shift) {
    const Trigonometry &c = k.of(trigonometry_single, trigonometry_twice);
    Turn turn = turn_of(k, c, magnitude);
    Expr quarter = shift == 0 ? turn.quarter : turn.quarter + k.bits(shift);
    Expr is_odd = operation(Op::bit_and, {quarter, k.bits(1)}) != k.bits(0);
    Expr value = select(is_odd, cosine(k, c, turn.r), sine(k, c, turn.r));
    Expr sign = operation(Op::bit_and, {operation(Op::shl, {quarter, k.bits(k.f.real == DType::f64 ? 62 : 30)}), k.bits(k.f.sign)});
    Expr signed_value = bitcast(k.f.real, operation(Op::bit_xor, {bitcast(k.f.bits, value), sign}));
    return select(magnitude <= k(c.limit), signed_value, k(NAN));
}

// atan(t) for t = numerator / denominator in 0 .. 1, then pi / 2 or pi and a sign as the octant has it.
Expr angle(const Arithmetic &k, const Expr &t, const Expr &offset, const Expr &offset_low, const Expr &is_negative) {
    const Trigonometry &c = k.of(trigonometry_single, trigonometry_twice);
    Expr square = t * t;
    Expr rest = t * square * k.polynomial(c.atan, square);
    Parts sum = ordered_sum(offset, select(is_negative, -t, t));
    return sum.head + (sum.tail + (offset_low + select(is_negative, -rest, rest)));
}

}  // namespace

Expr sin(Expr x) {
    Arithmetic k{format_of(x)};
    Expr sign = operation(Op::bit_and, {bitcast(k.f.bits, x), k.bits(k.f.sign)});
    return bitcast(k.f.real, operation(Op::bit_xor, {bitcast(k.f.bits, sine_after(k, abs(x), 0)), sign}));
}

Expr cos(Expr x) {
    Arithmetic k{format_of(x)};
    return sine_after(k, abs(x), 1);
}

// Above 1, pi / 2 - atan(1 / x), with what the quotient leaves.
Expr atan(Expr x) {
    Arithmetic k{format_of(x)};
    const Trigonometry &c = k.of(trigonometry_single, trigonometry_twice);
    Expr z = abs(x), large = k(1) < z;
    Expr t = select(large, k(1) / z, z);
    Expr value = angle(k, t, select(large, k(c.half_pi_high), k(0)), select(large, k(c.half_pi_middle), k(0)), large);
    return k.with_sign_of(x, value);
}

// The larger of |x| and |y| divides, so that nothing overflows. Comparisons leave a NaN in the quotient.
Expr atan2(Expr y, Expr x) {
    Arithmetic k{format_of(x)};
    const Trigonometry &c = k.of(trigonometry_single, trigonometry_twice);
    Expr width = abs(x), height = abs(y), steep = width < height;
    Expr least = select(steep, width, height), most = select(steep, height, width);
    // 0 / 0 and inf / inf.
    Expr t = select(least == most, select(most == k(0), k(0), k(1)), least / most);
    Expr left = bitcast(k.f.bits, x) < k.bits(0);  // -0 is at the left
    auto offset = [&](double half_pi) { return select(steep, k(half_pi), select(left, k(2 * half_pi), k(0))); };
    return k.with_sign_of(y, angle(k, t, offset(c.half_pi_high), offset(c.half_pi_middle), steep != left));
}

}  // namespace tessera::definitions

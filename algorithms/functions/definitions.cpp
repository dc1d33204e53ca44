#include "algorithms/functions/definitions.h"

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

namespace tessera::definitions {
namespace {

using Coefficients = std::vector<double>;  // constant term first

// What differs between f32 and f64. Polynomials were fitted for Tessera: relative errors with Sollya 8 (fpminimax),
// weighted ones by remez or Lawson's iteration and rounding. In brackets, the error of the rounded coefficients.
struct Format {
    DType real, bits;
    int mantissa, bias;
    int64_t sign;    // the sign bit alone
    double rounder;  // 1.5 * 2^mantissa: adding it leaves an integer in the low bits of the sum
    int64_t rounder_bits;
    double min_normal;
    double log2e, ln2_high, ln2_low;

    Coefficients exp;          // exp(r), |r| <= 0.3467, relative
    double exp_low, exp_high;  // below: rounds to 0; above: overflows
    double exp_flush;          // log2(e) times it rounds to -bias
    double sigmoid_high;       // above: sigmoid rounds to 1
    double silu_low;           // below: x sigmoid(x) rounds to -0

    double rsqrt_scale;  // its square brings every value within the square root of the range

    int64_t sqrt_half_bits;
    double subnormal_scale, subnormal_exponent;  // 2^mantissa and -mantissa
    Coefficients log;                            // (log(1 + f) - f + f^2 / 2) / f^3, sqrt(1/2) <= 1 + f <= sqrt(2), relative in log(1 + f)

    Coefficients tanh;  // (tanh(z) / z - 1) / z^2 in z^2, z <= 0.625, relative in tanh(z)
    double tanh_high;   // above: tanh rounds to 1
    Coefficients erf;   // erf(z) / z - 1 in z^2, z <= 0.84, relative in erf(z)
    double erf_high;    // above: erf rounds to 1
    double gauss_high;  // above: exp(-z^2 / 2) / 2 is flushed to 0

    // 2 sqrt(2 / pi) in two parts, the first short, and 2 sqrt(2 / pi) * 0.044715 in two parts.
    double linear_high, linear_low, cubic_high, cubic_low;
    double gelu_tanh_low, gelu_tanh_high;  // outside, the sigmoid within has settled at 0 or 1
};

const Format single = {
    .real = DType::f32,
    .bits = DType::i32,
    .mantissa = 23,
    .bias = 127,
    .sign = INT32_MIN,
    .rounder = 0x1.8p23,
    .rounder_bits = 0x4b400000,
    .min_normal = 0x1p-126,
    .log2e = 1.44269504088896340736,
    .ln2_high = 0.693147182464599609375,
    .ln2_low = -1.9046542121259336e-9,
    // [2^-28.1]
    .exp = {1, 1, 0.4999999105930328369140625, 0.16666521131992340087890625, 4.16689626872539520263671875e-2,
            8.3686746656894683837890625e-3, 1.378250424750149250030517578125e-3},
    .exp_low = -104,
    .exp_high = 89,
    .exp_flush = -88,
    .sigmoid_high = 20,
    .silu_low = -110,
    .rsqrt_scale = 0x1p32,
    .sqrt_half_bits = 0x3f3504f3,
    .subnormal_scale = 0x1p23,
    .subnormal_exponent = -23,
    // [2^-30.2]
    .log = {0.33333313465118408203125, -0.25000011920928955078125, 0.20002074539661407470703125, -0.16667856276035308837890625,
            0.142201840877532958984375, -0.1240811645984649658203125, 0.11886584758758544921875, -0.116614900529384613037109375,
            6.733147799968719482421875e-2},
    // [2^-27.7]
    .tanh = {-0.3333328068256378173828125, 0.1333141624927520751953125, -5.3737938404083251953125e-2, 2.06341184675693511962890625e-2,
             -5.700091831386089324951171875e-3},
    .tanh_high = 10,
    // [2^-27.3]
    .erf = {0.12837916612625122, -0.37612593173980712890625, 0.112829200923442840576171875, -2.681014500558376312255859375e-2,
            5.0632744096219539642333984375e-3, -6.384964217431843280792236328125e-4},
    .erf_high = 3.95,
    .gauss_high = 13.08,
    .linear_high = 1.5957698822021484375,
    .linear_low = -7.605964356116602e-7,
    .cubic_high = 7.1354813873767852783203125e-2,
    .cubic_low = 2.39883246599656e-9,
    .gelu_tanh_low = -11,
    .gelu_tanh_high = 6,
};

const Format twice = {
    .real = DType::f64,
    .bits = DType::i64,
    .mantissa = 52,
    .bias = 1023,
    .sign = INT64_MIN,
    .rounder = 0x1.8p52,
    .rounder_bits = 0x4338000000000000,
    .min_normal = 0x1p-1022,
    .log2e = 1.44269504088896340736,
    .ln2_high = 0.693147180559945286,
    .ln2_low = 2.3190468138462996e-17,
    // [2^-57.8]
    .exp = {1, 1, 0.50000000000000111, 0.166666666666664243, 4.16666666665269359e-2, 8.33333333348703839e-3, 1.38888889443629577e-3,
            1.98412695225935520e-4, 2.48014924156141046e-5, 2.75575720537663832e-6, 2.76304731796577751e-7, 2.50046117485854673e-8},
    .exp_low = -746,
    .exp_high = 710,
    .exp_flush = -709,
    .sigmoid_high = 40,
    .silu_low = -754,
    .rsqrt_scale = 0x1p256,
    .sqrt_half_bits = 0x3fe6a09e667f3bcd,
    .subnormal_scale = 0x1p52,
    .subnormal_exponent = -52,
    // [2^-56.6]
    .log = {0.333333333333331427, -0.249999999999879097, 0.200000000000667449, -0.166666666698414706, 0.142857142801049081,
            -0.124999996901282856, 0.111111111449130120, -0.100000152596836492, 9.09092408210774305e-2, -8.33291241054257420e-2,
            7.69152559746955067e-2, -7.14945110265652467e-2, 6.68465111575999027e-2, -6.19664970217848258e-2, 5.66792750263138134e-2,
            -5.67739288638180323e-2, 6.50463994832839732e-2, -5.98404178815304597e-2, 2.61630049707230091e-2},
    // [2^-61.1]
    .tanh = {-0.333333333333333148, 0.133333333333299664, -5.39682539661532276e-2, 2.18694884708038819e-2, -8.86323434034686684e-3,
             3.59211423716752042e-3, -1.45572729866968401e-3, 5.89456974057502437e-4, -2.37024924123098966e-4, 9.15798718886323241e-5,
             -3.02073714976101137e-5, 6.05078090155632257e-6},
    .tanh_high = 20,
    // [2^-56.3]
    .erf = {0.128379167095512586, -0.376126389031838981, 0.112837916709602040, -2.68661706459452643e-2, 5.22397763261511685e-3,
            -8.54832740208321534e-4, 1.20553453593415716e-4, -1.49258964961944909e-5, 1.64647336589188787e-6, -1.63705989537844650e-7,
            1.45867551576282424e-8, -9.81602220652100149e-10},
    .erf_high = 6,
    .gauss_high = 37.66,
    .linear_high = 1.595769121605741247549303807318210601806640625,
    .linear_low = -1.0535789519567580e-14,
    .cubic_high = 7.135481627260024939e-2,
    .cubic_low = -6.1751499181553150e-19,
    .gelu_tanh_low = -22,
    .gelu_tanh_high = 9,
};

// log(erfc(z)), 0.84 <= z <= 3.95, f32: minimises the relative error of 1 - erfc(z) [2^-27.3].
const Coefficients log_erfc_single = {
    -9.39144010771997272968292236328125e-5, -1.12810719013214111328125,       -0.636437237262725830078125,
    -0.104600988328456878662109375,         2.255682088434696197509765625e-2, -3.1277132220566272735595703125e-3,
    2.04719486646354198455810546875e-4};

// log(exp(z^2 / 2) erfc(z / sqrt(2))) / z + 1 / 2 in z - 5/2, 0 <= z <= 5, f32: minimises z times the absolute error
// [2^-27.3].
const double mills_centre = 2.5, mills_high = 5;
const Coefficients log_mills_single = {-0.005400436465,  0.07306225598,    -0.01143016852,   0.00171348732,
                                       -0.0002313310106, 2.567068441e-05,  -1.728585858e-06, -1.459828241e-07,
                                       9.572394788e-08,  -2.344410355e-08, 2.497884344e-09};

// exp(z^2 / 2) erfc(z / sqrt(2)) / 2, 0 <= z <= 39, f64, relative [2^-54.3]: a ratio, all of whose terms are positive.
const Coefficients mills_numerator_twice = {0.5,
                                            0.8279509691701088,
                                            0.67965093712747926,
                                            0.35737795991239324,
                                            0.13206274482484329,
                                            0.035673542202924652,
                                            0.0071242939313374068,
                                            0.0010399650480011067,
                                            0.00010660302754842068,
                                            6.9783015971103789e-06,
                                            2.2427148364219761e-07};
const Coefficients mills_denominator_twice = {1,
                                              2.4537864991430833,
                                              2.8171402374277301,
                                              2.0015768915810854,
                                              0.98019545771154115,
                                              0.34836135291058373,
                                              0.091992131612005576,
                                              0.018124046428576568,
                                              0.0026242978022438896,
                                              0.0002677763282530672,
                                              1.7492008092249359e-05,
                                              5.6216524209084821e-07};

const Format &format_of(const Expr &x) { return x.type() == DType::f64 ? twice : single; }

struct Arithmetic {
    const Format &f;
    Expr operator()(double value) const { return constant(f.real, value); }
    Expr bits(int64_t value) const { return constant_int(f.bits, value); }

    Expr polynomial(const Coefficients &c, const Expr &x) const {
        Expr sum = (*this)(c.back());
        for (size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, (*this)(c[i]));
        return sum;
    }

    // min and max give their second operand when either is NaN, so a NaN in x passes.
    Expr at_most(double high, const Expr &x) const { return min((*this)(high), x); }
    Expr at_least(double low, const Expr &x) const { return max((*this)(low), x); }

    // x's sign on a value that is not negative.
    Expr with_sign_of(const Expr &x, const Expr &value) const {
        Expr sign = operation(Op::bit_and, {bitcast(f.bits, x), bits(f.sign)});
        return bitcast(f.real, operation(Op::bit_or, {bitcast(f.bits, value), sign}));
    }

    Expr power_of_two(const Expr &biased) const { return bitcast(f.real, operation(Op::shl, {biased, bits(f.mantissa)})); }
};

// A value mantissa * 2^(exponent - offset), mantissa in 0.7 .. 1.42, with the exponent in the low bits of an integer.
struct Power {
    Expr mantissa, exponent;
};

// An exponent given in parts, so that it has no rounding error: its rounded sum, which only chooses the power of two,
// then the parts in the order of adding, of which the last two may be absent.
struct Exponent {
    Expr sum, head, middle, tail;
    explicit Exponent(const Expr &x) : sum(x), head(x) {}
    Exponent(Expr s, Expr h, Expr m, Expr t) : sum(s), head(h), middle(m), tail(t) {}
};

// Cody and Waite's reduction. The power of two comes out of the bits of a rounded sum: a conversion to integer would be
// undefined for a NaN.
Power exp_parts(const Arithmetic &k, double offset, const Exponent &x) {
    Expr rounder = k(k.f.rounder + offset);
    Expr sum = fma(x.sum, k(k.f.log2e), rounder);
    Expr n = sum - rounder;
    Expr r = fma(n, k(-k.f.ln2_high), x.head);
    if (x.middle.defined()) r = r + x.middle;
    Expr low = k(-k.f.ln2_low);
    r = x.tail.defined() ? r + fma(n, low, x.tail) : fma(n, low, r);
    return {k.polynomial(k.f.exp, r), bitcast(k.f.bits, sum)};
}

// exp(x) * 2^shift as one product; the caller keeps the biased exponent within 0 (which gives 0) .. 254 or 2046.
Expr exp_near(const Arithmetic &k, const Exponent &x, int shift = 0) {
    Power p = exp_parts(k, k.f.bias + shift, x);
    return p.mantissa * k.power_of_two(p.exponent);
}

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

// exp(z^2 / 2) Phi(-z) for z >= 0, f64. Above 5, where the high terms take over, both polynomials run in 1 / z from the
// other end: in a large z the rounding error of every step would stay.
Expr mills_f64(const Arithmetic &k, const Expr &z) {
    Expr large = k(5) < z, reciprocal = k(1) / z;
    Expr x = select(large, reciprocal, z);
    auto polynomial = [&](const Coefficients &c) {
        size_t n = c.size();
        Expr sum = select(large, k(c[0]), k(c[n - 1]));
        for (size_t i = 1; i < n; i++) sum = fma(sum, x, select(large, k(c[i]), k(c[n - 1 - i])));
        return sum;
    };
    return polynomial(mills_numerator_twice) * select(large, reciprocal, k(1)) / polynomial(mills_denominator_twice);
}

}  // namespace

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

Expr erf(Expr x) {
    Arithmetic k{format_of(x)};
    Expr magnitude = abs(x), z = k.at_most(k.f.erf_high, magnitude);
    Expr square = z * z;
    Expr small = fma(magnitude, k.polynomial(k.f.erf, square), magnitude);
    Expr erfc;
    if (k.f.real == DType::f32) {
        Expr exponent = k.polynomial(log_erfc_single, z);
        erfc = exp_near(k, Exponent(exponent));
    } else {
        erfc = exp_near(k, Exponent(-square), 1) * mills_f64(k, z * k(std::numbers::sqrt2));
    }
    return k.with_sign_of(x, select(z < k(0.84), small, k(1) - erfc));
}

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
    Expr e = exp(-abs(x));
    Expr factor = select(x < k(0), e, k(1));
    return fma(-factor, e / (k(1) + e), factor);
}

// The square root halves the quotient's error, which it would not as a divisor. Scaling keeps the quotient normal.
Expr rsqrt(Expr x) {
    Arithmetic k{format_of(x)};
    Expr large = k(1) <= abs(x);
    double scale = k.f.rsqrt_scale;
    Expr bounded_x = k.at_least(-1, x);  // -inf must give NaN, and its quotient is -0
    Expr quotient = k(1) / (bounded_x * select(large, k(1 / (scale * scale)), k(scale * scale)));
    return select(x == k(0), quotient, sqrt(quotient) * select(large, k(1 / scale), k(scale)));
}

Expr relu(Expr x) {
    Arithmetic k{format_of(x)};
    return k.at_least(0, x);
}

// x Phi(x) = max(x, 0) - |x| Phi(-|x|), and Phi(-z) = exp(-z^2 / 2) exp(z^2 / 2) erfc(z / sqrt(2)) / 2: nothing cancels
// on the negative side.
Expr gelu(Expr x) {
    Arithmetic k{format_of(x)};
    Expr z = k.at_most(k.f.gauss_high, abs(x));
    // z^2 cut short, so that the sums of the exponent's leading parts are exact.
    Expr square = bitcast(k.f.real, operation(Op::bit_and, {bitcast(k.f.bits, z * z), k.bits(-4096)}));
    Expr square_low = fma(z, z, -square);
    Expr head = k(-0.5) * square;
    Expr phi;
    if (k.f.real == DType::f32) {
        Expr near = k.at_most(mills_high, z), linear = k(-0.5) * near;
        Expr rest = k.polynomial(log_mills_single, near - k(mills_centre));
        Expr tail = fma(near, rest, k(-0.5) * square_low);
        phi = exp_near(k, {head + linear + tail, head, linear, tail}, -1);
    } else {
        phi = exp_near(k, {head, head, {}, k(-0.5) * square_low}) * mills_f64(k, z);
    }
    return fma(-z, phi, k.at_least(0, x));
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

Expr pow(Expr x, Expr y) {
    Arithmetic k{format_of(x)};
    const Expr power = exp(y * log(x));
    return select(y == k(0), select(x != x, x, k(1)), power);
}

}  // namespace tessera::definitions

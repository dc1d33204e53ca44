#include "algorithms/functions/arithmetic.h"

namespace tessera::definitions {

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

// (expm1(r) - r) / r^2, |r| <= 0.5, relative in expm1(r) [2^-30.5, 2^-56.6].
const Coefficients expm1_single = {0.5, 0.166666672, 0.041666586, 0.00833317544, 0.00138966506, 0.000199655595, 2.30588903e-5};
const Coefficients expm1_twice = {0.5,
                                  0.16666666666666669,
                                  0.041666666666667164,
                                  0.0083333333333321328,
                                  0.0013888888888660108,
                                  0.00019841269843606381,
                                  2.4801587668097645e-5,
                                  2.7557317346294152e-6,
                                  2.7557052937256452e-7,
                                  2.5052734347500488e-8,
                                  2.0966902530043438e-9,
                                  1.6008490204841416e-10};

// (log(1 + t) - t + t^2 / 2) / t^3, -0.25 <= t <= 0.5, relative in log(1 + t) [2^-28.5, 2^-56.0].
const Coefficients log1p_single = {0.333333403,  -0.250001669, 0.199995667,   -0.166551769, 0.14277105,
                                   -0.127303064, 0.117004052,  -0.0911912099, 0.0377939083};
const Coefficients log1p_twice = {0.33333333333333753,  -0.25000000000010619,  0.1999999999984961,   -0.16666666663789367,
                                  0.14285714299979441,  -0.12500000291646038,  0.11111110772515698,  -0.099999855001648583,
                                  0.090908929306142527, -0.083337052075601298, 0.07693390603295959,  -0.071385777444084184,
                                  0.066433155512884492, -0.062497939148211439, 0.060832042507198987, -0.05968673310646555,
                                  0.050702511371564347, -0.029392014463505606, 0.0080910955680990743};
const int64_t three_quarters_single = 0x3f400000, three_quarters_twice = 0x3fe8000000000000;

const Format &format_of(const Expr &x) { return x.type() == DType::f64 ? twice : single; }

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

Expr exp_near(const Arithmetic &k, const Exponent &x, int shift) {
    Power p = exp_parts(k, k.f.bias + shift, x);
    return p.mantissa * k.power_of_two(p.exponent);
}

Parts sum_of(const Expr &a, const Expr &b) {
    Expr sum = a + b, of_b = sum - a;
    return {sum, (a - (sum - of_b)) + (b - of_b)};
}

Parts ordered_sum(const Expr &a, const Expr &b) {
    Expr sum = a + b;
    return {sum, (a - sum) + b};
}

Parts product_of(const Expr &a, const Expr &b) {
    Expr product = a * b;
    return {product, fma(a, b, -product)};
}

ExpReduction exp_reduction(const Arithmetic &k, double offset, const Expr &x, const Expr &tail) {
    Expr rounder = k(k.f.rounder + offset);
    Expr sum = fma(x, k(k.f.log2e), rounder);
    Expr n = sum - rounder;
    Expr high = fma(n, k(-k.f.ln2_high), x);
    Expr low = tail.defined() ? fma(n, k(-k.f.ln2_low), tail) : n * k(-k.f.ln2_low);
    return {bitcast(k.f.bits, sum), ordered_sum(high, low)};
}

Expr expm1_rest(const Arithmetic &k, const Parts &r) {
    return fma(r.head * r.head, k.polynomial(k.of(expm1_single, expm1_twice), r.head), r.tail);
}

Expr times_power(const Arithmetic &k, const Expr &value, const Expr &exponent) {
    Expr half = k.half_of(exponent);
    return value * k.power_of_two(half) * k.power_of_two(exponent - half);
}

// u = 2^e m with m in 0.75 .. 1.5, where e log(2) and log(m) cancel least.
Parts log_parts(const Arithmetic &k, const Parts &u) {
    Expr bits = bitcast(k.f.bits, u.head);
    Expr e = operation(Op::shr, {bits - k.bits(k.of(three_quarters_single, three_quarters_twice)), k.bits(k.f.mantissa)});
    Expr shift = operation(Op::shl, {e, k.bits(k.f.mantissa)});
    Expr m = bitcast(k.f.real, bits - shift);
    // 2^-e; where it is below the least normal, c counts for nothing.
    Expr scale = bitcast(k.f.real, max(k.bits(static_cast<int64_t>(k.f.bias) << k.f.mantissa) - shift, k.bits(0)));
    Expr above = m - k(1), t = fma(u.tail, scale, above), t_low = fma(u.tail, scale, above - t), n = cast(k.f.real, e);
    Expr head = fma(n, k(k.f.ln2_high), t);
    Expr lost = fma(n, k(k.f.ln2_high), -head) + t;
    Expr rest = t * t * fma(k.polynomial(k.of(log1p_single, log1p_twice), t), t, k(-0.5));
    return {head, lost + (t_low + fma(n, k(k.f.ln2_low), rest))};
}

}  // namespace tessera::definitions

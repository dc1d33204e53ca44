#include <numbers>

#include "algorithms/functions/arithmetic.h"
#include "algorithms/functions/definitions.h"

namespace tessera::definitions {

namespace {

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

// x exp(x^2) erfc(x) - 1 / 2 in (x - c) / (x + c), 0.6 <= x <= 10.1 with c = 2 in f32 [2^-26.0], 0.6 <= x <= 27.3 with c = 3 in f64
// [2^-55.2], relative in erfc(x).
const double erfc_centre_single = 2, erfc_centre_twice = 3;
const Coefficients erfc_single = {0.010791353,    0.167211041,   -0.203844398,  0.12151368,      -0.0289743338,
                                  -0.00750012184, 0.00476695411, 0.00105048821, -0.000683585007, -0.000165748628};
const Coefficients erfc_twice = {0.037003453544169854,  0.095306226959227983,   -0.14658304803289096,   0.13988054760177623,
                                 -0.095469750306633086, 0.046350263331013039,   -0.014019825625999155,  0.00091082269478916353,
                                 0.001242876156181784,  -0.0004125438544207043, -8.4608178229863065e-5, 6.8980391978009099e-5,
                                 6.463675708571317e-6,  -1.1112282284898261e-5, -9.9096324632266407e-7, 1.8885591889031025e-6,
                                 2.918276611197599e-7,  -3.3143669398605591e-7, -8.6005697236182374e-8, 5.8395929065107958e-8,
                                 1.589394291828665e-8,  -8.7954894021583665e-9};
const double erfc_threshold = 0.8;                             // below, 1 - erf: it loses little there
const double erfc_zero_single = 10.1, erfc_zero_twice = 27.3;  // from here erfc rounds to 0

// erfc(z) for z >= 0.8 as the product of exp(-z^2) and z exp(z^2) erfc(z), both in two parts, divided by z.
Expr erfc_tail(const Arithmetic &k, const Expr &z) {
    const double c = k.of(erfc_centre_single, erfc_centre_twice);
    Parts square = product_of(z, z);
    ExpReduction e = exp_reduction(k, 2 * k.f.bias, -square.head, -square.tail);
    Parts exponential = ordered_sum(k(1), e.r.head);
    Expr e_low = exponential.tail + expm1_rest(k, e.r);
    // (z - c) / (z + c), corrected by what the quotient leaves.
    Expr inverse = k(1) / (z + k(c)), about = fma(inverse, k(-2 * c), k(1));
    Expr v = fma(fma(about, -z, fma(about + k(1), k(-c), z)), inverse, about);
    Parts scaled = ordered_sum(k(0.5), k.polynomial(k.of(erfc_single, erfc_twice), v));
    Parts p = product_of(scaled.head, exponential.head);
    Expr p_low = fma(scaled.tail, exponential.head, fma(scaled.head, e_low, p.tail));
    Expr reciprocal = k(1) / z, quotient = p.head * reciprocal;
    Expr rest = fma(-quotient, z, p.head) + p_low;
    return times_power(k, fma(rest, reciprocal, quotient), e.exponent);
}

}  // namespace

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

Expr erfc(Expr x) {
    Arithmetic k{format_of(x)};
    Expr z = k.at_most(k.of(erfc_zero_single, erfc_zero_twice), abs(x));
    Parts difference = ordered_sum(k(1), -x);
    Expr small = difference.head + fma(-x, k.polynomial(k.f.erf, z * z), difference.tail);
    Expr tail = erfc_tail(k, z);
    return select(z < k(erfc_threshold), small, select(x < k(0), k(2) - tail, tail));
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
    return fma(-z, phi, max(x, k(0)));
}

}  // namespace tessera::definitions

// What definitions are written with: the constants that differ between f32 and f64, and the steps that several functions share.
#pragma once
#include <cstdint>
#include <vector>

#include "algorithms/expr/expr.h"

namespace tessera::definitions {

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

const Format &format_of(const Expr &x);

struct Arithmetic {
    const Format &f;
    Expr operator()(double value) const { return constant(f.real, value); }
    Expr bits(int64_t value) const { return constant_int(f.bits, value); }

    Expr polynomial(const Coefficients &c, const Expr &x) const {
        Expr sum = (*this)(c.back());
        for (size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, (*this)(c[i]));
        return sum;
    }

    // A NaN in x passes.
    Expr at_most(double high, const Expr &x) const { return min((*this)(high), x); }
    Expr at_least(double low, const Expr &x) const { return max((*this)(low), x); }

    // x's sign on a value that is not negative, or has that sign.
    Expr with_sign_of(const Expr &x, const Expr &value) const {
        Expr sign = operation(Op::bit_and, {bitcast(f.bits, x), bits(f.sign)});
        return bitcast(f.real, operation(Op::bit_or, {bitcast(f.bits, value), sign}));
    }

    Expr power_of_two(const Expr &biased) const { return bitcast(f.real, operation(Op::shl, {biased, bits(f.mantissa)})); }
    Expr half_of(const Expr &integer) const { return operation(Op::shr, {integer, bits(1)}); }

    // The function's value at f32 or f64, of two tables.
    template <typename T>
    const T &of(const T &in_f32, const T &in_f64) const {
        return f.real == DType::f64 ? in_f64 : in_f32;
    }
};

// A value in two parts, the second below the first one's last place: an operation with its rounding error.
struct Parts {
    Expr head, tail;
};
Parts sum_of(const Expr &a, const Expr &b);
Parts ordered_sum(const Expr &a, const Expr &b);  // |a| >= |b|, or a = 0
Parts product_of(const Expr &a, const Expr &b);

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
Power exp_parts(const Arithmetic &k, double offset, const Exponent &x);

// exp(x) * 2^shift as one product; the caller keeps the biased exponent within 0 (which gives 0) .. 254 or 2046.
Expr exp_near(const Arithmetic &k, const Exponent &x, int shift = 0);

// exp(x) before its power of two: x = n log(2) + r, with r in two parts and 2^n as an integer that holds n + offset in its low bits.
struct ExpReduction {
    Expr exponent;
    Parts r;
};
// `tail` is a part of x below its last place; undefined for none.
ExpReduction exp_reduction(const Arithmetic &k, double offset, const Expr &x, const Expr &tail = {});
// expm1(r.head) - r.head + r.tail for |r| <= 0.5: what is above r.head in expm1(r).
Expr expm1_rest(const Arithmetic &k, const Parts &r);
// value * 2^(exponent - 2 bias), in two steps so that a subnormal result is rounded once more and an exponent may be out of range.
Expr times_power(const Arithmetic &k, const Expr &value, const Expr &exponent);
// log(u + c) for a positive normal u and a c that is a few last places of it at most.
Parts log_parts(const Arithmetic &k, const Parts &u);

}  // namespace tessera::definitions

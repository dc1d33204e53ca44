// Discrete Fourier transforms of a few values as straight-line expressions, over fma: what one pass of an FFT does with
// the values that it holds in registers.
//
// Lengths are products of 2, 3, 4 and 5, taken apart by Cooley and Tukey's rule ("An algorithm for the machine calculation
// of complex Fourier series", 1965). A constant factor costs no multiplication of its own: it waits beside the value, and
// goes into the fma that adds it (Linzer and Feig, "Implementation of efficient FFT algorithms on fused multiply-add
// architectures", 1993).
#pragma once
#include <vector>

#include "algorithms/expr/expr.h"

namespace tessera {

struct Complex {
    Expr re, im;  // of one float type
};

enum class FourierSign : int8_t { forward = -1, inverse = 1 };

// X[k] = sum over j of x[j] exp(sign 2 pi i j k / n), n = x.size() >= 1. InternalError where n has a prime factor above 5.
std::vector<Complex> butterfly(const std::vector<Complex> &x, FourierSign sign);

// exp(2 pi i numerator / denominator), each part correctly rounded but for the last bit, and exact at multiples of a quarter turn.
struct Turn {
    double cosine, sine;
};
Turn turn(int64_t numerator, int64_t denominator);

}  // namespace tessera

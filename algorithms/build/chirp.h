// Bluestein's transform of any length as a circular convolution of a length that fast transforms have (Bluestein, "A linear filtering
// approach to the computation of discrete Fourier transform", 1970): j k = (j^2 + k^2 - (k - j)^2) / 2, so with the chirp
// w[j] = exp(pi i j^2 / n)
//
//     X[k] = conj(w[k]) sum over j of (x[j] conj(w[j])) w[k - j]
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

namespace tessera {

// Whether n >= 1 has no prime factor but 2, 3 and 5.
bool is_smooth(int64_t n);
// The length of the convolution for n points: a smooth one of at least 2 n - 1, whose transforms take the fewest passes over memory.
int64_t convolution_points(int64_t n);

// w[0 ..= n - 1], each part correctly rounded but for the last bit.
std::vector<std::complex<double>> chirp(int64_t n);
// The transform of the chirp laid around a circle of m points, w[-l] = w[l] at m - l and zeros between, over m: what the transform of x w
// is multiplied with. Errors are some 1e-16 of the largest.
std::vector<std::complex<double>> chirp_spectrum(int64_t n, int64_t m);

}  // namespace tessera

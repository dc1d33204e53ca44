// Fourier transforms along one dim as tile functions. Complex numbers are pairs along that dim, real part first: what NumPy's
// complex64, C's float _Complex and std::complex<float> are as floats. All other dims are a batch.
//
//     Tile spectrum = fft(x, N);        // x[B, N], |N| / 2 points: X[n] = sum over j of x[j] exp(-2 pi i j n / points)
//     Tile again = ifft(spectrum, N);   // with exp(+...) and 1 / points, as NumPy's
//
// The method is Stockham's autosort FFT, decimated in time (Van Loan, "Computational Frameworks for the Fast Fourier Transform",
// SIAM 1992, section 1.7): one stage for each radix, "fft.first", "fft.pass2", ..., "fft.last". No stage has to reorder anything. A
// further transform of the same algorithm has "fft2.first" and so on, the next one "fft3.first". A pass of radix r turns transforms
// of s points into transforms of r s:
//
//     y[p, k, q] = sum over j of exp(-2 pi i j k / r) exp(-2 pi i j q / (r s)) x[j m + p, q]      m = points / (r s), s = |q|
//
// and [p, k, q] lies in memory as the next pass's [j m + p, q]. Inside the transform, real and imaginary parts are separate, along
// a dim fft.c before those. Dims are named for their extents (fft.p128, fft.k8, fft.q64); one of extent 1 is left out. The points
// are fixed, so the factors exp(...) are constants.
//
// A length with another prime factor than 2, 3 and 5 is a convolution of two to four times as many points (chirp.h): "fft.chirped" is
// x w, "fft2.first", "fft2.pass2", ... its transform, "fft3.first", "fft3.pass2", ... the inverse of its product with the chirp's, and
// "fft.unchirped" the result.
#pragma once
#include "algorithms/build/builder.h"
#include "algorithms/build/butterfly.h"

namespace tessera {

// The longest transform: its constants take about twice the room of its data, inside the library, and six times where it is a convolution.
constexpr int64_t max_fourier_points = 1 << 18;

// UserError shape.fft: fewer than 1, or more than that.
void check_fourier_points(int64_t n);
// The radices of the passes for n points, in order; none for 1. n has the prime factors 2, 3 and 5.
std::vector<int64_t> fourier_radices(int64_t n);

// The transforms of the pairs along N. UserErrors shape.fft and shape.unknown-dim.
Tile fft(const Tile &x, const Dim &N, Span caller = std::source_location::current());
Tile ifft(const Tile &x, const Dim &N, Span caller = std::source_location::current());

// The transform of real x[…, N]. Its first |N| / 2 + 1 points determine the rest, so only those are given, as pairs along K: |K| =
// 2 (|N| / 2 + 1). For an even |N| it is computed by a transform of half as many points, which are pairs of x.
Tile rfft(const Tile &x, const Dim &N, const Dim &K, Span caller = std::source_location::current());
// The inverse of rfft: the real x[…, N] of x[…, K]. The imaginary parts of the first point and, for an even |N|, of the last one
// count as 0, as in NumPy.
Tile irfft(const Tile &x, const Dim &K, const Dim &N, Span caller = std::source_location::current());

}  // namespace tessera

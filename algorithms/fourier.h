// Fourier transforms along one dim as tile functions. Complex numbers are pairs in a last dim C of extent 2, real part first:
// what NumPy's complex64, C's float _Complex and std::complex<float> are in memory. All other dims are a batch.
//
//     Tile spectrum = fft(x, N, C);        // x[B, N, C]: X[n] = sum over j of x[j] exp(-2 pi i j n / |N|)
//     Tile again = ifft(spectrum, N, C);   // with exp(+...) and 1 / |N|, as NumPy's
//
// The method is Stockham's autosort FFT, decimated in time (Van Loan, "Computational Frameworks for the Fast Fourier
// Transform", SIAM 1992, section 1.7): one stage "fft.pass<i>" for each radix, none of which has to reorder anything. Pass i
// turns `before` transforms' points into radix times as many:
//
//     y[C, p, k, q] = sum over j of exp(-2 pi i j k / r) (exp(-2 pi i j q / (r s)) x[C, j m + p, q])     m = |N| / (r s), s = |q|
//
// and [p, k, q] lies in memory as the next pass's [j m + p, q]. Dims are named for their extents, fft.p128, fft.k8 and fft.q64,
// and missing where that is 1. |N| is fixed, so the factors exp(...) are constants; its prime factors are 2, 3 and 5.
#pragma once
#include "algorithms/builder.h"
#include "algorithms/butterfly.h"

namespace tessera {

// The longest transform: its constants take about twice the room of its data, inside the library.
constexpr int64_t max_fourier_points = 1 << 18;

// The radices of the passes for n points, in order; none for 1. UserError shape.fft with the prime that n must not have.
std::vector<int64_t> fourier_radices(int64_t n);

// (…, N, C), each of x's dims in its order. UserErrors shape.fft and shape.unknown-dim.
Tile fft(const Tile &x, const Dim &N, const Dim &C);
Tile ifft(const Tile &x, const Dim &N, const Dim &C);

// The transform of real x[…, N], of which the first |N| / 2 + 1 points say all: (…, K, C), K fixed at that. Of an even |N| by a
// transform of half as many points, which are pairs of x (stage "fft.pass<i>").
Tile rfft(const Tile &x, const Dim &N, const Dim &K, const Dim &C);
// The real x[…, N] whose rfft x[…, K, C] is; the imaginary parts of the first point and, of an even |N|, the last are not read, as in NumPy.
Tile irfft(const Tile &x, const Dim &K, const Dim &N, const Dim &C);

}  // namespace tessera

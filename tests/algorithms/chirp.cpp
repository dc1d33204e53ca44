#include "algorithms/build/chirp.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

namespace tessera::test_chirp {

TEST_CASE("a convolution has a smooth length with room for both sides, and at most a power of two") {
    CHECK(is_smooth(1));
    CHECK(is_smooth(2 * 9 * 125));
    for (int64_t n : {0, -4, 7, 14, 121}) CHECK_FALSE(is_smooth(n));
    for (int64_t n = 1; n < 3000; n += 7) {
        const int64_t m = convolution_points(n);
        CHECK(is_smooth(m));
        CHECK(m >= 2 * n - 1);
        CHECK(m < 4 * n);
    }
    CHECK(convolution_points(1021) == 2048);
}

TEST_CASE("the chirp's spectrum is the sum that defines it, over its length") {
    for (int64_t n : {1, 2, 7, 13, 30}) {
        const int64_t m = convolution_points(n);
        const std::vector<std::complex<double>> w = chirp(n), spectrum = chirp_spectrum(n, m);
        for (int64_t k = 0; k < m; k++) {
            std::complex<double> sum = w[0];
            for (int64_t l = 1; l < n; l++)
                sum += 2 * std::cos(2 * std::numbers::pi * static_cast<double>(k * l % m) / static_cast<double>(m)) *
                       w[static_cast<size_t>(l)];
            CHECK(std::abs(sum / static_cast<double>(m) - spectrum[static_cast<size_t>(k)]) < 1e-14);
        }
    }
    const std::complex<double> at = chirp(7)[3];  // exp(9 pi i / 7)
    CHECK(std::abs(at - std::polar(1.0, 9 * std::numbers::pi / 7)) < 1e-15);
}

}  // namespace tessera::test_chirp

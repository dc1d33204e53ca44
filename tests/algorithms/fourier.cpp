#include "algorithms/build/fourier.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <complex>
#include <numbers>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"

namespace tessera::test_fourier {

using Numbers = std::vector<std::complex<double>>;

static Numbers transformed(const Numbers &x, int sign) {
    const size_t n = x.size();
    Numbers y(n);
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < n; j++)
            y[k] += x[j] * std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n));
    return y;
}

static std::vector<double> counted(size_t n) {
    std::vector<double> values(n);
    for (size_t i = 0; i < n; i++) values[i] = static_cast<double>(i * i % 17) / 8 - 1;
    return values;
}

static Numbers paired(const std::vector<double> &values) {
    Numbers pairs;
    for (size_t i = 0; i + 1 < values.size(); i += 2) pairs.emplace_back(values[i], values[i + 1]);
    return pairs;
}

static void check_near(const Numbers &got, const Numbers &expected) {
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); i++) {
        CHECK(got[i].real() == Approx(expected[i].real()).margin(1e-11));
        CHECK(got[i].imag() == Approx(expected[i].imag()).margin(1e-11));
    }
}

static std::vector<double> run(Algorithm (*make)(const Numerics &, const Options &), int64_t points, const std::vector<double> &x) {
    const Algorithm a = make(numerics_named("f64"), {{"points", points}});
    return evaluate(a, {{"x", Array(DType::f64, {1, static_cast<int64_t>(x.size())}, x)}}).at("y").values();
}

TEST_CASE("fourier: every transform is the sum that defines it") {
    for (int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 22, 30, 32, 49, 60, 64, 75, 97, 128}) {
        INFO("points " << n);
        const size_t size = static_cast<size_t>(n);
        const std::vector<double> x = counted(2 * size), r = counted(size);
        const Numbers z = paired(x);
        check_near(paired(run(library::fft, n, x)), transformed(z, -1));
        Numbers back = transformed(z, 1);
        for (auto &v : back) v /= static_cast<double>(n);
        check_near(paired(run(library::ifft, n, x)), back);
        Numbers half = transformed(Numbers(r.begin(), r.end()), -1);
        half.resize(size / 2 + 1);
        check_near(paired(run(library::rfft, n, r)), half);
        std::vector<double> bins;
        for (auto &v : half) bins.push_back(v.real()), bins.push_back(v.imag());
        bins[1] = 7;  // no real signal has one
        const std::vector<double> again = run(library::irfft, n, bins);
        check_near(Numbers(again.begin(), again.end()), Numbers(r.begin(), r.end()));
    }
}

TEST_CASE("fourier: in an algorithm of one's own, over any dims, of any expression") {
    Builder f("power");
    Dim H = f.dim("H"), W = f.dim("W"), N = f.dim("N", 12), K = f.dim("K", 14);
    Tile x = f.input("x", {H, W, N});
    Tile spectrum = rfft(x * 2.0, N, K).named("spectrum");                   // (H, W, K)
    const Algorithm a = f.output("y", sum(spectrum * spectrum, K)).build();  // (H, W)
    const std::vector<double> values = counted(2 * 3 * 12);
    const Array y = evaluate(a, {{"x", Array(DType::f32, {2, 3, 12}, values)}}).at("y");
    for (size_t row = 0; row < 6; row++) {
        Numbers all;
        for (size_t i = 0; i < 12; i++) all.emplace_back(2 * values[row * 12 + i]);
        double power = 0;
        const Numbers transform = transformed(all, -1);
        for (size_t k = 0; k < 7; k++) power += std::norm(transform[k]);
        CHECK(y.values()[row] == Approx(power).epsilon(1e-5));
    }
}

TEST_CASE("fourier: any length, in f32: the relative error of a transform in the norm") {
    double largest = 0;
    for (int64_t n = 1; n <= 200; n++) {
        INFO("points " << n);
        const std::vector<double> x = counted(2 * static_cast<size_t>(n));
        const Array y = evaluate(library::fft({}, {{"points", n}}), {{"x", Array(DType::f32, {1, 2 * n}, x)}}).at("y");
        const Numbers got = paired(y.values()), exact = transformed(paired(x), -1);
        double off = 0, all = 0;
        for (size_t i = 0; i < got.size(); i++) off += std::norm(got[i] - exact[i]), all += std::norm(exact[i]);
        largest = std::max(largest, std::sqrt(off / all));
        CHECK(std::sqrt(off / all) < 4e-7);
    }
    CHECK(largest > 1e-8);
}

TEST_CASE("fourier: several transforms in one algorithm") {
    for (int64_t points : {1, 4, 60, 128}) {
        Builder f("again", numerics_named("f64"));
        Dim B = f.dim("B"), N = f.dim("N", 2 * points);
        Tile x = f.input("x", {B, N});
        Tile spectrum = fft(x, N);
        Tile again = ifft(spectrum, N);
        const Algorithm a = f.output("y", again).build();
        CHECK((a.find_stage("fft.last") != nullptr) == (points > 1));
        CHECK((a.find_stage("fft2.last") != nullptr) == (points > 1));
        const std::vector<double> values = counted(static_cast<size_t>(4 * points));
        const Array y = evaluate(a, {{"x", Array(DType::f64, {2, 2 * points}, values)}}).at("y");
        check_near(paired(y.values()), paired(values));
    }
    // A circular convolution, which is a product of spectra: rfft, rfft and irfft.
    Builder f("convolved", numerics_named("f64"));
    Dim N = f.dim("N", 12), K = f.dim("K", 14);
    Tile x = rfft(f.input("x", {N}), N, K).named("xs"), w = rfft(f.input("w", {N}), N, K).named("ws");
    const Expr k = variable("K"), real = k - k % Expr(2);
    auto part = [&](const Tile &t, int which) { return t.at({{"K", real + which}}, {"K"}); };
    Tile product = select(f.tile(k % Expr(2) == Expr(0), {K}), part(x, 0) * part(w, 0) - part(x, 1) * part(w, 1),
                          part(x, 0) * part(w, 1) + part(x, 1) * part(w, 0));
    const Algorithm a = f.output("y", irfft(product, K, N)).build();
    CHECK(a.find_stage("fft3.pairs") != nullptr);
    const std::vector<double> u = counted(12), v = counted(24);
    const std::vector<double> weights(v.begin() + 12, v.end());
    const Array y = evaluate(a, {{"x", Array(DType::f64, {12}, u)}, {"w", Array(DType::f64, {12}, weights)}}).at("y");
    for (size_t n = 0; n < 12; n++) {
        double sum = 0;
        for (size_t j = 0; j < 12; j++) sum += u[j] * weights[(n + 12 - j) % 12];
        CHECK(y.values()[n] == Approx(sum).margin(1e-11));
    }
}

TEST_CASE("fourier: transforms of reals have the range of those of pairs") {
    const double large = std::ldexp(1.0, 127);  // twice it is no f32
    for (int64_t points : {2, 4, 16, 15, 60}) {
        INFO("points " << points);
        const size_t n = static_cast<size_t>(points), bins = 2 * (n / 2 + 1);
        std::vector<double> impulse(n), spectrum(bins);
        impulse[0] = large;
        const Array y = evaluate(library::rfft({}, {{"points", points}}), {{"x", Array(DType::f32, {1, points}, impulse)}}).at("y");
        for (size_t i = 0; i < bins; i++) CHECK(y.values()[i] == (i % 2 ? 0 : large));
        if (points % 2 || points == 60) continue;
        spectrum[0] = spectrum[bins - 2] = large;  // an impulse at every second point
        const Array x =
            evaluate(library::irfft({}, {{"points", points}}), {{"x", Array(DType::f32, {1, static_cast<int64_t>(bins)}, spectrum)}})
                .at("y");
        for (size_t i = 0; i < n; i++) CHECK(x.values()[i] == (i % 2 ? 0 : large / static_cast<double>(n) * 2));
    }
}

TEST_CASE("fourier: radices") {
    using R = std::vector<int64_t>;
    CHECK(fourier_radices(1) == R{});
    CHECK(fourier_radices(2) == R{2});
    CHECK(fourier_radices(4096) == R{8, 8, 8, 8});
    CHECK(fourier_radices(1000) == R{8, 5, 5, 5});
    for (int64_t n : {2, 6, 16, 48, 300, 1024, 3000, 65536, 262144}) {
        int64_t product = 1;
        for (int64_t r : fourier_radices(n)) product *= r;
        CHECK(product == n);
    }
}

TEST_CASE("fourier: what cannot be transformed: the words") {
    CHECK_THROWS_WITH(check_fourier_points(0), "error[shape.fft]: a Fourier transform of 0 points: expected 1 ..= 262144 of them.");
    CHECK_THROWS_WITH(library::fft({}, {{"points", 262145}}), Catch::Contains("of 262145 points: expected 1 ..= 262144 of them."));
    Builder f("wrong");
    Dim B = f.dim("B"), N = f.dim("N", 15), K = f.dim("K", 12);
    Tile x = f.input("x", {B, N});
    CHECK_THROWS_WITH(
        fft(x, B),
        Catch::EndsWith("error[shape.fft]: fft: dim 'B' is not fixed; expected an extent that is known here, since the radices follow from "
                        "it: declare it as dim(\"B\", 256)."));
    CHECK_THROWS_WITH(fft(x, N), Catch::EndsWith("error[shape.fft]: fft: dim 'N' has extent 15; expected an even one, since a real part "
                                                 "and an imaginary part follow each other."));
    CHECK_THROWS_WITH(rfft(x, N, K), Catch::EndsWith("error[shape.fft]: rfft: dim 'K' has extent 12; expected 16."));
    CHECK_THROWS_WITH(ifft(x, K),
                      Catch::EndsWith("error[shape.unknown-dim]: ifft: x[B, N] has no dim 'K'; its dims are B, N. Did you mean 'B'?"));
    CHECK_THROWS_WITH(fft(f.input("i", {B, K}, DType::i32), K),
                      Catch::EndsWith("error[shape.fft]: fft: i[B, K] is i32; expected floats: convert with cast."));
    CHECK_THROWS_WITH(
        stack({x, x}, N),
        Catch::EndsWith(
            "error[shape.stack]: stack: dim 'N' has extent 15, and there are 2 tiles; expected one for each element: declare it "
            "as dim(\"N\", 2)."));
    CHECK_THROWS_WITH(
        stack({x}, B),
        Catch::EndsWith("error[shape.stack]: stack: dim 'B' is not fixed, and there are 1 tiles; expected one for each element: declare it "
                        "as dim(\"B\", 1)."));
}

}  // namespace tessera::test_fourier

// Resizing against the definition in f64, at extents that grow, shrink, stay and vanish.
#include "algorithms/build/resize.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "support/text/error.h"

namespace tessera::test_resize {

// Where element p of `out` lies in `in` elements.
static double place(Coordinates how, int64_t p, int64_t in, int64_t out) {
    const auto x = static_cast<double>(p), n = static_cast<double>(in), m = static_cast<double>(out);
    if (how == Coordinates::half_pixel) return (x + 0.5) * n / m - 0.5;
    if (how == Coordinates::align_corners) return out > 1 ? x * (n - 1) / (m - 1) : 0;
    return x * n / m;
}

static double keys(double a, double x) {
    x = std::abs(x);
    if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

static std::vector<double> expected(const std::vector<double> &x, int64_t out, const Resize &how) {
    const auto in = static_cast<int64_t>(x.size());
    const auto at = [&](double i) { return x[static_cast<size_t>(std::clamp(i, 0.0, static_cast<double>(in - 1)))]; };
    std::vector<double> y;
    for (int64_t p = 0; p < out; p++) {
        const double c = place(how.coordinates, p, in, out), below = std::floor(c + 1e-12), t = std::max(c - below, 0.0);
        double value = 0;
        if (how.antialias) {  // Pillow's way: a kernel as wide as elements of y lie apart
            const double scale = std::max(static_cast<double>(in) / static_cast<double>(out), 1.0), center = c + 0.5;
            double sum = 0;
            for (int64_t i = 0; i < in; i++) {
                const double away = (static_cast<double>(i) + 0.5 - center) / scale;
                const double w = how.by == Interpolation::linear ? std::max(1 - std::abs(away), 0.0) : keys(how.cubic, away);
                value += w * x[static_cast<size_t>(i)], sum += w;
            }
            value /= sum;
        } else if (how.by == Interpolation::nearest) {
            const double e = 1e-9;
            value = at(how.nearest == Nearest::floor       ? std::floor(c + e)
                       : how.nearest == Nearest::ceil      ? std::ceil(c - e)
                       : how.nearest == Nearest::half_down ? std::ceil(c - 0.5 - e)
                                                           : std::floor(c + 0.5 + e));
        } else if (how.by == Interpolation::linear) {
            value = at(below) * (1 - t) + at(below + 1) * t;
        } else {
            for (int k = -1; k <= 2; k++) value += at(below + k) * keys(how.cubic, t - k);
        }
        y.push_back(value);
    }
    return y;
}

TEST_CASE("resize: all ways at all pairs of small extents") {
    std::vector<Resize> ways;
    for (Coordinates c : {Coordinates::half_pixel, Coordinates::align_corners, Coordinates::asymmetric}) {
        for (Nearest r : {Nearest::floor, Nearest::ceil, Nearest::half_down, Nearest::half_up})
            ways.push_back({Interpolation::nearest, c, r});
        ways.push_back({Interpolation::linear, c});
        ways.push_back({.by = Interpolation::cubic, .coordinates = c});
    }
    ways.push_back({.by = Interpolation::linear, .antialias = true});
    ways.push_back({.by = Interpolation::cubic, .cubic = -0.5, .antialias = true});
    for (const Resize &how : ways) {
        Builder f("f");
        Dim W = symbolic_dim("W");
        W.min = 1;
        const Dim Q = f.dim("Q");
        f.output("y", resize(f.input("x", {f.dim(W)}, DType::f32), W, Q, how) + 0.0 * f.input("like", {Q}));
        const Algorithm a = f.build();
        for (int64_t in : {1, 2, 3, 5, 8, 13})
            for (int64_t out : {0, 1, 2, 3, 4, 7, 13, 26}) {
                std::vector<double> x;
                for (int64_t i = 0; i < in; i++) x.push_back(static_cast<double>((i * 5 + 3) % 7 - 3));
                const std::vector<double> y =
                    evaluate(a, {{"x", Array(DType::f32, {in}, x)}, {"like", Array(DType::f32, {out})}}).at("y").values();
                const std::vector<double> right = expected(x, out, how);
                INFO(interpolation_names[static_cast<size_t>(how.by)] << ' ' << coordinates_names[static_cast<size_t>(how.coordinates)]
                                                                      << ' ' << nearest_names[static_cast<size_t>(how.nearest)]
                                                                      << (how.antialias ? " antialias " : " ") << in << " to " << out);
                REQUIRE(y.size() == right.size());
                for (size_t i = 0; i < y.size(); i++) CHECK(y[i] == Approx(right[i]).margin(1e-5));
            }
    }
}

TEST_CASE("resize: integers stay what they are where the nearest is taken, and become floats between") {
    Builder f("f");
    const Dim W = f.dim("W", 2), Q = f.dim("Q", 4);
    const Tile x = f.input("x", {W}, DType::u8);
    f.output("near", resize(x, W, Q, {Interpolation::nearest}), DType::u8);
    const Tile between = [&] {
        const Builder::Scope scope = f.scope("second");  // which keeps the names of stages apart
        return resize(x, W, Q);
    }();
    f.output("between", between);
    const auto made = evaluate(f.build(), {{"x", Array(DType::u8, {2}, {10, 20})}});
    CHECK(made.at("near").values() == std::vector<double>{10, 10, 20, 20});
    CHECK(made.at("between").values() == std::vector<double>{10, 12.5, 17.5, 20});
}

TEST_CASE("resize: what cannot be") {
    Builder f("f");
    const Dim W = f.dim("W"), Q = f.dim("Q"), H = f.dim("H");
    const Tile x = f.input("x", {W});
    CHECK_THROWS_WITH(resize(x, H, Q),
                      Catch::EndsWith("error[shape.window]: resize: x[W] has no dim 'H'; its dims are W. Did you mean 'W'?"));
    CHECK_THROWS_WITH(
        resize(x, W, Q, {.by = Interpolation::nearest, .antialias = true}),
        Catch::EndsWith("error[resize.options]: resize: antialias is for linear and cubic with half_pixel, not for nearest with "
                        "half_pixel; leave it out."));
}

}  // namespace tessera::test_resize

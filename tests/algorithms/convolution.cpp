#include "algorithms/build/convolution.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"

namespace tessera::test_convolution {

static std::vector<double> counted(size_t n) {
    std::vector<double> values(n);
    for (size_t i = 0; i < n; i++) values[i] = static_cast<double>(i % 11) - 4;
    return values;
}

TEST_CASE("convolution: windows step, spread and see what lies outside, as the loops say") {
    const int64_t H = 5, W = 6, C = 2, R = 3, S = 2, O = 3;
    for (Window window : {Window{1, 0, 1}, Window{2, 3, 1}, Window{1, 2, 2}, Window{3, 1, 2}}) {
        Options options{{"stride", window.stride}, {"padding", window.padding}, {"dilation", window.dilation}};
        auto positions = [&](int64_t in, int64_t taps) {
            return (in + 2 * window.padding - window.dilation * (taps - 1) - 1) / window.stride + 1;
        };
        const int64_t P = positions(H, R), Q = positions(W, S);
        std::vector<double> x = counted(H * W * C), w = counted(R * S * C * O), expected, most;
        auto at = [&](int64_t h, int64_t v, int64_t c, double outside) {
            return h < 0 || h >= H || v < 0 || v >= W ? outside : x[static_cast<size_t>((h * W + v) * C + c)];
        };
        auto tap = [&](int64_t p, int64_t r) { return p * window.stride + r * window.dilation - window.padding; };
        for (int64_t p = 0; p < P; p++)
            for (int64_t q = 0; q < Q; q++)
                for (int64_t o = 0; o < O; o++) {
                    double sum = 0;
                    for (int64_t r = 0; r < R; r++)
                        for (int64_t s = 0; s < S; s++)
                            for (int64_t c = 0; c < C; c++)
                                sum += at(tap(p, r), tap(q, s), c, 0) * w[static_cast<size_t>(((r * S + s) * C + c) * O + o)];
                    expected.push_back(sum);
                }
        Array y = evaluate(library::conv2d_nhwc({}, options),
                           {{"x", Array(DType::f32, {1, H, W, C}, x)}, {"w", Array(DType::f32, {R, S, C, O}, w)}})
                      .at("y");
        CHECK(y.extents == std::vector<int64_t>{1, P, Q, O});
        CHECK(y.values() == expected);
    }
}

TEST_CASE("convolution: pools count what lies outside as -inf and as 0") {
    Options options{{"stride", 2}, {"padding", 1}, {"dilation", 1}, {"size", 2}};
    Array x(DType::f32, {1, 2, 3, 1}, {-1, -2, -3, -4, -5, -6});
    CHECK(evaluate(library::max_pool2d_nhwc({}, options), {{"x", x}}).at("y").values() == std::vector<double>{-1, -2, -4, -5});
    CHECK(evaluate(library::average_pool2d_nhwc({}, options), {{"x", x}}).at("y").values() == std::vector<double>{-0.25, -1.25, -1, -2.75});
}

TEST_CASE("convolution: windows give the dims that they declare, which are found by name too") {
    Builder f("f");
    const Dim H = f.dim("H", 9), W = f.dim("W", 7), R = f.dim("R", 3), S = f.dim("S", 2);
    const Window window{2, 1, 1};
    const Windows seen = windows_over(f.input("x", {H, W}), {{H, R, window, "P"}, {W, S, window, "Q"}});
    CHECK(seen.tile.dims() == std::vector<std::string>{"P", "Q", "R", "S"});
    for (const auto &declared : {seen.padded, seen.positions})
        for (const Dim &d : declared) CHECK(equal(f.dim_named(d.name).size, d.size));
    CHECK(seen.padded[0].name == "HP");
    f.output("y", max(max(max(seen.tile, S), R), seen.positions[1]));
    CHECK(evaluate(f.build(), {{"x", Array(DType::f32, {9, 7})}}).at("y").extents == std::vector<int64_t>{5});
}

TEST_CASE("convolution: a window that does not fit has no positions") {
    Options options{{"stride", 2}, {"padding", 0}, {"dilation", 3}};
    Array x(DType::f32, {1, 6, 6, 1}), w(DType::f32, {3, 3, 1, 1});
    CHECK(evaluate(library::conv2d_nhwc({}, options), {{"x", x}, {"w", w}}).at("y").extents == std::vector<int64_t>{1, 0, 0, 1});
}

TEST_CASE("convolution: a tile of other values than a load is padded too") {
    Builder f("padded_relu");
    Dim L = f.dim("L");
    Window window{1, 1, 1};
    Tile x = f.input("x", {L});
    Tile padded = pad(relu(x), {L}, {padded_dim("LP", L, window)}, window, 7);
    Algorithm a = f.output("y", padded).build();
    CHECK(evaluate(a, {{"x", Array(DType::f32, {3}, {-1, 2, 3})}}).at("y").values() == std::vector<double>{7, 0, 2, 3, 7});
}

TEST_CASE("convolution: a dim that the tile lacks") {
    Builder f("lost");
    Dim L = f.dim("L"), M = f.dim("M"), R = f.dim("R");
    Tile x = f.input("x", {L});
    CHECK_THROWS_WITH(windows(x, M, positions_dim("P", M, R, {}), R, {}),
                      Catch::EndsWith("error[shape.window]: windows: x[L] has no dim 'M'; its dims are L. Did you mean 'L'?"));
    CHECK_THROWS_WITH(pad(x, {M}, {padded_dim("MP", M, {})}, {}),
                      Catch::EndsWith("error[shape.window]: pad: x[L] has no dim 'M'; its dims are L. Did you mean 'L'?"));
}

// A window along each of three dims, with another stride, dilation and padding at each end.
struct Along {
    int64_t in, taps;
    Window window;
    int64_t positions() const {
        return std::max<int64_t>((in + window.padded() - window.dilation * (taps - 1) - 1) / window.stride + 1, 0);
    }
};

static const std::vector<std::vector<Along>> three_dims = {
    {{5, 2, {1, 0, 1}}, {6, 3, {2, 1, 1}}, {7, 2, {3, 2, 2, 0}}},
    {{4, 3, {2, 0, 1, 3}}, {3, 3, {1, 2, 2, 1}}, {5, 1, {2, 0, 1}}},
    {{1, 1, {1, 0, 1}}, {2, 2, {2, 1, 1, 0}}, {3, 3, {1, 1, 1}}},
};

// For each position and tap of each dim, the element that is seen, or none.
template <class Visit>
static void each_window(const std::vector<Along> &d, Visit visit) {
    std::vector<int64_t> p(3), t(3), at(3);
    const auto element = [&](size_t i) { return p[i] * d[i].window.stride + t[i] * d[i].window.dilation - d[i].window.padding; };
    for (p[0] = 0; p[0] < d[0].positions(); p[0]++)
        for (p[1] = 0; p[1] < d[1].positions(); p[1]++)
            for (p[2] = 0; p[2] < d[2].positions(); p[2]++)
                for (t[0] = 0; t[0] < d[0].taps; t[0]++)
                    for (t[1] = 0; t[1] < d[1].taps; t[1]++)
                        for (t[2] = 0; t[2] < d[2].taps; t[2]++) {
                            bool inside = true;
                            for (size_t i = 0; i < 3; i++) at[i] = element(i), inside &= at[i] >= 0 && at[i] < d[i].in;
                            visit((p[0] * d[1].positions() + p[1]) * d[2].positions() + p[2], (t[0] * d[1].taps + t[1]) * d[2].taps + t[2],
                                  (at[0] * d[1].in + at[1]) * d[2].in + at[2], inside);
                        }
}

static std::vector<WindowDim> declared(Builder &f, const std::vector<Along> &d) {
    std::vector<WindowDim> all;
    for (size_t i = 0; i < 3; i++) {
        const std::string n = std::to_string(i);
        all.push_back({f.dim("X" + n, d[i].in), f.dim("R" + n, d[i].taps), d[i].window, "P" + n});
    }
    return all;
}

static std::vector<int64_t> extents_of(const std::vector<Along> &d, int64_t (*of)(const Along &)) { return {of(d[0]), of(d[1]), of(d[2])}; }

static Array numbers(const std::vector<int64_t> &extents, int64_t step) {
    int64_t count = 1;
    for (int64_t e : extents) count *= e;
    std::vector<double> values;
    for (int64_t i = 0; i < count; i++) values.push_back(static_cast<double>(i * step % 11 - 5));
    return Array(DType::f32, extents, values);
}

TEST_CASE("convolution: windows over three dims, each with its own stride, dilation and padding") {
    for (const std::vector<Along> &d : three_dims) {
        const auto in = extents_of(d, [](const Along &a) { return a.in; }), taps = extents_of(d, [](const Along &a) { return a.taps; }),
                   out = extents_of(d, [](const Along &a) { return a.positions(); });
        const Array x = numbers(in, 7), w = numbers(taps, 3);
        const auto made = [&](auto apply) {
            Builder f("f");
            const std::vector<WindowDim> dims = declared(f, d);
            const Tile tx = f.input("x", {dims[0].in, dims[1].in, dims[2].in}),
                       tw = f.input("w", {dims[0].taps, dims[1].taps, dims[2].taps});
            f.output("y", apply(tx, tw, dims) + 0.0 * sum(sum(sum(tw, dims[0].taps), dims[1].taps), dims[2].taps));
            const Array y = evaluate(f.build(), {{"x", x}, {"w", w}}).at("y");
            CHECK(y.extents == out);
            return y.values();
        };
        const size_t positions = static_cast<size_t>(out[0] * out[1] * out[2]);
        std::vector<double> products(positions, 0), most(positions, -INFINITY), sums(positions, 0), inside(positions, 0);
        each_window(d, [&](int64_t p, int64_t t, int64_t at, bool is_inside) {
            const auto i = static_cast<size_t>(p);
            if (!is_inside) return;
            const double value = x.values()[static_cast<size_t>(at)];
            products[i] += value * w.values()[static_cast<size_t>(t)];
            most[i] = std::max(most[i], value), sums[i] += value, inside[i]++;
        });
        CHECK(made([](const Tile &a, const Tile &b, const std::vector<WindowDim> &n) { return conv(a, b, n, {}); }) == products);
        CHECK(made([](const Tile &a, const Tile &, const std::vector<WindowDim> &n) { return max_pool(a, n); }) == most);
        const std::vector<double> means =
                                      made([](const Tile &a, const Tile &, const std::vector<WindowDim> &n) { return average_pool(a, n); }),
                                  own = made([](const Tile &a, const Tile &, const std::vector<WindowDim> &n) {
                                      return average_pool(a, n, false);
                                  });
        const auto all = static_cast<double>(taps[0] * taps[1] * taps[2]);
        for (size_t i = 0; i < positions; i++) {
            CHECK(means[i] == static_cast<double>(static_cast<float>(sums[i] / all)));
            if (inside[i] > 0) CHECK(own[i] == static_cast<double>(static_cast<float>(sums[i] / inside[i])));
            else CHECK(std::isnan(own[i]));
        }
    }
}

TEST_CASE("convolution: transposed_conv is the transpose of conv, with dilation and padding at both ends") {
    for (const std::vector<Along> &d : three_dims) {
        const auto in = extents_of(d, [](const Along &a) { return a.in; }), taps = extents_of(d, [](const Along &a) { return a.taps; }),
                   out = extents_of(d, [](const Along &a) { return a.positions(); });
        // Positions that no window of a shorter dim could have are left over: as many as `end` adds.
        std::vector<int64_t> end;
        for (size_t i = 0; i < 3; i++)
            end.push_back(in[i] - ((out[i] - 1) * d[i].window.stride + d[i].window.dilation * (taps[i] - 1) + 1 - d[i].window.padded()));
        Builder f("f");
        std::vector<WindowDim> dims;
        std::vector<Dim> of_g, of_w;
        for (size_t i = 0; i < 3; i++) {
            const std::string n = std::to_string(i);
            dims.push_back({f.dim("G" + n, out[i]), f.dim("R" + n, taps[i]), d[i].window, "X" + n});
            of_g.push_back(dims[i].in), of_w.push_back(dims[i].taps);
        }
        f.output("y", transposed_conv(f.input("g", of_g), f.input("w", of_w), dims, {}, end));
        const Array g = numbers(out, 5), w = numbers(taps, 3);
        const Array y = evaluate(f.build(), {{"g", g}, {"w", w}}).at("y");
        CHECK(y.extents == in);
        std::vector<double> expected(y.values().size(), 0);
        each_window(d, [&](int64_t p, int64_t t, int64_t at, bool is_inside) {
            if (is_inside) expected[static_cast<size_t>(at)] += g.values()[static_cast<size_t>(p)] * w.values()[static_cast<size_t>(t)];
        });
        CHECK(y.values() == expected);
    }
}

}  // namespace tessera::test_convolution

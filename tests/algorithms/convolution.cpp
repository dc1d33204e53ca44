#include "algorithms/build/convolution.h"

#include <catch2/catch.hpp>

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
    const Windows2d seen = windows2d(f.input("x", {H, W}), H, W, R, S, {2, 1, 1});
    CHECK(seen.tile.dims() == std::vector<std::string>{"P", "Q", "R", "S"});
    for (const Dim &d : {seen.HP, seen.WP, seen.P, seen.Q}) CHECK(equal(f.dim_named(d.name).size, d.size));
    f.output("y", max(max(max(seen.tile, S), R), seen.Q));
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

}  // namespace tessera::test_convolution

// Lesson 19: floats of one byte.
//
// A dtype such as f8e4m3fn is for storage: a tile of it computes in f32, and a cast says how a number gets into it. Where a format has no
// room the cast decides: by its rounding, and by saturation or the format's own overflow. Lowering makes casts of operations on integers,
// so every target has these types, and all give the same bits.
#include <cstdio>

#include "algorithms/build/random.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/array.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/text/print.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"

using namespace tessera;

// Rows of weights, each with a scale that is a power of two: codes times scales are the weights.
static Algorithm scaled_product() {
    Builder f("scaled_product");
    const Dim N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {K});
    const Tile codes = f.input("codes", {N, K}, DType::f8e4m3fn), scales = f.input("scales", {N}, DType::f8e8m0fnu);
    return f.output("y", dot(codes, x, {K}) * scales).build();  // (N)
}

static Algorithm stored(Rounding rounding, bool saturate) {
    Builder f("stored");
    const Tile x = f.input("x", {f.dim("N")});
    return f.output("y", cast(DType::f8e4m3fn, x, rounding, saturate), DType::f8e4m3fn).build();  // (N)
}

// By random numbers: the mean of many is x.
static Algorithm at_random() {
    Builder f("at_random");
    const Tile x = f.input("x", {f.dim("N")});
    const RandomStream stream = {f.parameter("seed", DType::i64), f.parameter("step", DType::i64)};
    return f.output("y", round_stochastic(x, DType::f8e4m3fn, stream), DType::f8e4m3fn).build();  // (N)
}

int main() {
    std::printf("%s\n", to_text(scaled_product()).c_str());
    const Array codes(DType::f8e4m3fn, {2, 3}, {1, 2, 3.5, -448, 0.25, 0.001953125}), scales(DType::f8e8m0fnu, {2}, {0.5, 4});
    const Array y = evaluate(scaled_product(), {{"x", Array(DType::f32, {3}, {1, 10, 100})}, {"codes", codes}, {"scales", scales}}).at("y");
    std::printf("y = %g, %g\n\n", y.values()[0], y.values()[1]);

    Array x(DType::f32, {4}, {17, -17, 464, 1000}), code(DType::f8e4m3fn, {4});
    for (Rounding rounding : roundings)
        for (bool saturate : {false, true}) {
            interpret(lower(stored(rounding, saturate), {}, target_named("avx2")), {{"x", x.view("x")}, {"y", code.view("y")}});
            std::printf("%-12s %-9s", name_of(rounding), saturate ? "saturate" : "");
            for (double v : code.values()) std::printf(" %6g", v);
            std::printf("\n");
        }

    const Array many(DType::f32, {4096}, std::vector<double>(4096, 17));
    const std::map<std::string, Scalar> parameters = {{"seed", Scalar::of_integer(DType::i64, 7)},
                                                      {"step", Scalar::of_integer(DType::i64, 0)}};
    double sum = 0;
    for (double v : evaluate(at_random(), {{"x", many}}, parameters).at("y").values()) sum += v;
    std::printf("\n17 is 16 or 18; the mean of 4096 at random is %.2f\n", sum / 4096);
}

// Output:
// algorithm scaled_product: f32 (storage f32, compute f32, accumulate f32, nearest_even)
//   dim N
//   dim K
//   input x[K]: f32
//   input codes[N, K]: f8e4m3fn
//   input scales[N]: f8e8m0fnu
//   dot[N]: f32 = dot over K of (f32(codes[N, K]), x[K])
//   y[N]: f32 = dot[N]*f32(scales[N])
//   outputs y
//
// y = 185.5, -1781.22
//
// nearest_even               16    -16    448    nan
// nearest_even saturate      16    -16    448    448
// toward_zero                16    -16    448    448
// toward_zero  saturate      16    -16    448    448
// up                         18    -16    nan    nan
// up           saturate      18    -16    448    448
// down                       16    -18    448    448
// down         saturate      16    -18    448    448
//
// 17 is 16 or 18; the mean of 4096 at random is 16.98

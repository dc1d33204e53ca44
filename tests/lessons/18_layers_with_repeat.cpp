// Lesson 18: layers with Repeat.
//
// A call that repeats runs its callee once for each index of a dim, in order. A layer's weights are a slice of a stack; what a layer
// makes of its input is carried to the next one, without a copy; and what each layer makes may be stacked. Code is the same for six
// layers and for a hundred. An output of one bool ends the rounds early: `until`.
#include <cstdio>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"
#include "support/text/error.h"

using namespace tessera;

// y[N] = relu(x[K] w[K, N]), K = N, and how large it is.
static Algorithm layer() {
    Builder f("layer", numerics_named("f32"));
    const Dim N = f.dim("N"), K = f.dim(derived_dim("K", extent("N")));
    const Tile x = f.input("x", {K}), w = f.input("w", {K, N});
    const Tile y = relu(dot(x, w, {K}).named("acc"));  // (N)
    return f.output("y", y).output("size", sum(y, N)).build();
}

// y = the last of L layers, sizes[L] those of all; w is a stack of weights.
static Algorithm layers() {
    Builder f("layers", numerics_named("f32"));
    const Dim L = f.dim("L"), N = f.dim("N"), K = f.dim(derived_dim("K", extent("N")));
    const Tile x = f.input("x", {K}), w = f.input("w", {L, K, N});
    const std::vector<Tile> made = f.repeat("layer", layer(), {.dim = "L", .carried = {{"x", "y"}}, .stacked = {"size"}}, {x, w});
    return f.output("y", made[0]).output("sizes", made[1]).build();
}

int main() {
    const Algorithm program = layers();
    const Array x(DType::f32, {2}, {1, 2}), w(DType::f32, {3, 2, 2}, {1, 0, 0, 1, /**/ 2, 0, 0, 2, /**/ 0, 1, 1, -9});
    const auto made = evaluate(program, {{"x", x}, {"w", w}});
    std::printf("y = %g %g; sizes %g %g %g\n\n", made.at("y").values()[0], made.at("y").values()[1], made.at("sizes").values()[0],
                made.at("sizes").values()[1], made.at("sizes").values()[2]);

    // Knobs are stated of the callee's stages, by the call's name. Weights are packed ahead of time as ever; the stack has one header.
    const Schedule packed =
        Schedule("layers/packed")
            .stage("layer.acc", StageKnobs().micro({{"N", 8}}).vector({{"N", 8}}).pack("layer.w", "prepack", {"N/8", "K", "N%8"}));
    std::printf("%s\n", to_text(lower(program, resolve(packed, Library()).stages, target_named("avx2"))).c_str());

    // Rounds that need one another do not run in parallel.
    try {
        const Schedule parallel = Schedule("layers/parallel").stage("layer", StageKnobs().parallel({"L"}));
        lower(program, resolve(parallel, Library()).stages, target_named("avx2"));
    } catch (const UserError &e) { std::printf("%s\n", e.what()); }
}

// Output:
// y = 4 0; sizes 3 6 4
//
// tile program layers for avx2
//   dim L
//   dim N
//   dim K = |N|
//   dim N.o8 = (|N| + 7)/8
//   dim N.i8 = 8
//   input x[K]: f32
//   input w.packed[L, N.o8, K, N.i8]: f32, w[L, K, N] packed as L, N/8, K, N%8
//   output y[N]: f32
//   output sizes[L]: f32
//   y.carry[2, |N|]: f32 in workspace
//   if 2 <= |L|
//     invoke layer(x, w.packed[0, 0, 0, 0 : 1, 2, 3], y.carry[0, 0 : 1], sizes[0], K=|N|, N=|N|, N.i8=8)
//     for layer.L < |L| - 2
//       invoke layer(y.carry[layer.L%2, 0 : 1], w.packed[layer.L + 1, 0, 0, 0 : 1, 2, 3], y.carry[1 - layer.L%2, 0 : 1], sizes[layer.L +
//> 1], K=|N|, N=|N|, N.i8=8)
//     invoke layer(y.carry[|L|%2, 0 : 1], w.packed[|L| - 1, 0, 0, 0 : 1, 2, 3], y, sizes[|L| - 1], K=|N|, N=|N|, N.i8=8)
//   else
//     if 1 <= |L|
//       invoke layer(x, w.packed[0, 0, 0, 0 : 1, 2, 3], y, sizes[0], K=|N|, N=|N|, N.i8=8)
//     else
//       for layer.N < |N|
//         y[layer.N] <- x[layer.N]
// tile program layer for avx2
//   dim N
//   dim K = |N|
//   dim N.o8 = (|N| + 7)/8
//   dim N.i8 = 8
//   input x[K]: f32
//   input w.packed[N.o8, K, N.i8]: f32, w[K, N] packed as N/8, K, N%8
//   output y[N]: f32
//   output size[]: f32
//   acc[(|N| + 7)/8*8]: f32 in workspace
//   for n.micro < (|N| + 7)/8
//     acc.acc[8]: f32 in registers
//     vector N.lane < 8
//       acc.acc[N.lane] = 0.0
//     for k < |N|
//       vector N.lane2 < 8
//         acc.acc[N.lane2] = fma(x[k], w.packed[n.micro, k, N.lane2], acc.acc[N.lane2])
//     vector N.lane3 < 8
//       acc[n.micro*8 + N.lane3] = acc.acc[N.lane3]
//   for n < |N|
//     y[n] = max(acc[n], 0.0)
//   size.acc[1]: f32 in registers
//   size.acc[0] = 0.0
//   for n2 < |N|
//     size.acc[0] = size.acc[0] + max(acc[n2], 0.0)
//   size[] = size.acc[0]
//
// error[schedule.parallel]: layer: each repetition takes the result of the one before ('x'), so they run in order.

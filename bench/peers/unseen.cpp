// tessera-unseen: a generator of algorithms that no schedule was written for and no cost model has met, to see what tuning makes
// of a user's own.
#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "generators/generator.h"

using namespace tessera;

// No product of matrices: max(a, -a) is |a|.
static Algorithm city_block(const Numerics &numerics) {
    Builder f("city_block", numerics);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}), c = f.input("c", {N, K});
    Tile difference = x - c;                                             // (M, K, N)
    return f.output("y", sum(max(difference, -difference), K)).build();  // (M, N)
}

// Two products that share an operand.
static Algorithm swiglu(const Numerics &numerics) {
    Builder f("swiglu", numerics);
    Dim M = f.dim("M"), F = f.dim("F"), K = f.dim("K");
    Tile x = f.input("x", {M, K}), gate = f.input("gate", {K, F}), up = f.input("up", {K, F});
    return f.output("y", silu(dot(x, gate).named("gated")) * dot(x, up).named("raised")).build();  // (M, F)
}

// Scores that only a fold reads, so that they need never be in memory.
static Algorithm log_partition(const Numerics &numerics) {
    Builder f("log_partition", numerics);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K}), c = f.input("c", {N, K});
    Tile scores = dot(x, transpose(c)).named("scores");                                 // (M, N)
    Tile top = max(scores, N).named("top");                                             // (M)
    return f.output("y", log(sum(exp(scores - top).named("terms"), N)) + top).build();  // (M)
}

int main(int argc, char **argv) {
    Registry registry;
    registry.add("city_block", "y[M, N] = sum over K of |x[M, K] - c[N, K]|", city_block);
    registry.add("swiglu", "y[M, F] = silu(x[M, K] gate[K, F]) * (x up[K, F])", swiglu);
    registry.add("log_partition", "y[M] = log of the sum over N of exp(x[M, K] c[N, K]^T)", log_partition);
    return generator_main(argc, argv, registry);
}

// What is computed: y[M, N] = silu(x[M, K] w[K, N] + b[N]). How is in schedules/linear_silu/.
#include "generators/generator.h"
#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"

using namespace tessera;

static Algorithm linear_silu(const Numerics &numerics) {
    Builder f("linear_silu", numerics);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K});
    Tile w = f.input("w", {K, N});
    Tile b = f.input("b", {N});
    Tile acc = dot(x, w).named("acc");            // (M, N)
    return f.output("y", silu(acc + b)).build();  // (M, N)
}

int main(int argc, char **argv) {
    Registry registry;
    registry.add("linear_silu", "y[M, N] = silu(x[M, K] w[K, N] + b[N])", linear_silu);
    return generator_main(argc, argv, registry);
}

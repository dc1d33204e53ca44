// A generator of activations alone, which the standard library has only at the end of something.
#include "algorithms/build/tile_functions.h"
#include "generators/generator.h"

using namespace tessera;

static Algorithm activation(const char *name, Tile (*function)(const Tile &), const Numerics &numerics) {
    Builder f(name, numerics);
    Tile x = f.input("x", {f.dim("M"), f.dim("N")});
    return f.output("y", function(x)).build();  // (M, N)
}

int main(int argc, char **argv) {
    Registry registry;
    registry.add("gelu", "y[M, N] = gelu(x[M, N])", [](const Numerics &n) { return activation("gelu", gelu, n); })
        .add("gelu_tanh", "y[M, N] = gelu_tanh(x[M, N])", [](const Numerics &n) { return activation("gelu_tanh", gelu_tanh, n); })
        .add("silu", "y[M, N] = silu(x[M, N])", [](const Numerics &n) { return activation("silu", silu, n); });
    return generator_main(argc, argv, registry);
}

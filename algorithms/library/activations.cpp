#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

static Algorithm activation(const char *name, Tile (*function)(const Tile &, Span), const Numerics &n) {
    Builder f(name, n);
    Tile x = f.input("x", {f.dim("M"), f.dim("N")});
    return f.output("y", function(x, std::source_location::current())).build();  // (M, N)
}

Algorithm gelu(const Numerics &n) { return activation("gelu", tessera::gelu, n); }
Algorithm gelu_tanh(const Numerics &n) { return activation("gelu_tanh", tessera::gelu_tanh, n); }
Algorithm silu(const Numerics &n) { return activation("silu", tessera::silu, n); }

Algorithm swiglu(const Numerics &n) {
    Builder f("swiglu", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile gate = f.input("gate", {M, N}), up = f.input("up", {M, N});
    return f.output("y", tessera::silu(gate) * up).build();  // (M, N)
}

}  // namespace tessera::library

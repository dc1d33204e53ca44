#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm softmax(const Numerics &n) {
    Builder f("softmax", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    return f.output("y", tessera::softmax(x, N)).build();
}

Algorithm layernorm(const Numerics &n) {
    Builder f("layernorm", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    Tile gamma = f.input("gamma", {N}), beta = f.input("beta", {N});
    Tile epsilon = f.parameter("epsilon", n.compute);
    std::vector<Tile> parts = f.fold(welford_monoid(n.compute), {x}, {N.name});
    Tile scale = rsqrt(parts[2] / parts[0] + epsilon).named("scale");  // (M)
    return f.output("y", fma((x - parts[1]) * scale, gamma, beta)).build();
}

Algorithm residual_layernorm(const Numerics &n) {
    Builder f("residual_layernorm", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N}), r = f.input("r", {M, N});
    Tile gamma = f.input("gamma", {N}), beta = f.input("beta", {N});
    Tile total = (x + r).named("total");  // (M, N)
    std::vector<Tile> parts = f.fold(welford_monoid(n.compute), {total}, {N.name});
    Tile scale = rsqrt(parts[2] / parts[0] + 1e-12).named("scale");  // (M); BERT's epsilon
    return f.output("y", fma((total - parts[1]) * scale, gamma, beta)).build();
}

Algorithm rmsnorm(const Numerics &n) {
    Builder f("rmsnorm", n);
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    Tile gamma = f.input("gamma", {N});
    return f.output("y", tessera::rmsnorm(x, gamma, N, 1e-6)).build();
}

}  // namespace tessera::library

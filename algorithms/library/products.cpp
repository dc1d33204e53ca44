#include "algorithms/library/library.h"
#include "algorithms/tile_functions.h"

namespace tessera::library {

Algorithm matmul(const Numerics &n) {
    Builder f("matmul", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K});
    Tile w = f.input("w", {K, N});
    return f.output("y", dot(x, w)).build();  // (M, N)
}

Algorithm linear(const Numerics &n) {
    Builder f("linear", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K});
    Tile w = f.input("w", {K, N});
    Tile b = f.input("b", {N});
    Tile acc = dot(x, w).named("acc");  // (M, N)
    return f.output("y", acc + b).build();
}

Algorithm linear_gelu(const Numerics &n) {
    Builder f("linear_gelu", n);
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, K});
    Tile w = f.input("w", {K, N});
    Tile b = f.input("b", {N});
    Tile acc = dot(x, w).named("acc");  // (M, N)
    return f.output("y", gelu(acc + b)).build();
}

Algorithm gemv(const Numerics &n) {
    Builder f("gemv", n);
    Dim M = f.dim("M"), K = f.dim("K");
    Tile a = f.input("a", {M, K});
    Tile x = f.input("x", {K});
    return f.output("y", dot(a, x)).build();  // (M)
}

}  // namespace tessera::library

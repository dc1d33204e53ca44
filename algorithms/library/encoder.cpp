#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm feed_forward(const Numerics &n) {
    Builder f("feed_forward", n);
    Dim M = f.dim("M"), D = f.dim("D"), F = f.dim("F");
    Tile x = f.input("x", {M, D});
    Tile w_up = f.input("w_up", {D, F}), b_up = f.input("b_up", {F});
    Tile w_down = f.input("w_down", {F, D}), b_down = f.input("b_down", {D});
    Tile gamma = f.input("gamma", {D}), beta = f.input("beta", {D});
    Tile hidden = f.call("up", linear_gelu(n), {x, w_up, b_up})[0];               // (M, F)
    Tile update = f.call("down", linear(n), {hidden, w_down, b_down})[0];         // (M, D)
    Tile y = f.call("norm", residual_layernorm(n), {update, x, gamma, beta})[0];  // (M, D)
    return f.output("y", y).build();
}

}  // namespace tessera::library

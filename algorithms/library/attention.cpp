#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

static Algorithm attend(const std::string &name, const Numerics &n, bool causal) {
    Builder f(name, n);
    Dim H = f.dim("H"), S = f.dim("S"), T = f.dim("T"), D = f.dim("D"), E = f.dim("E");
    Tile q = f.input("q", {H, S, D});
    Tile k = f.input("k", {H, T, D});
    Tile v = f.input("v", {H, T, E});
    Tile root(&f, rsqrt(Tile(&f, cast(n.compute, extent("D")), {})).value(), {});
    Tile scaled = (q * root).named("scaled");           // (H, S, D)
    Tile scores = dot(scaled, k, {D}).named("scores");  // (H, S, T)
    Tile where = causal ? f.index(T) <= f.index(S) : Tile();
    std::vector<Tile> parts = f.fold(online_softmax_monoid(n.accumulate, "E"), {scores, v}, {"T"}, where);
    return f.output("o", parts[2] / parts[1]).build();  // (H, S, E)
}

Algorithm attention(const Numerics &n) { return attend("attention", n, false); }
Algorithm attention_causal(const Numerics &n) { return attend("attention_causal", n, true); }

}  // namespace tessera::library

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

namespace {

enum class Keys : uint8_t { all, earlier, kept };  // that a query sees

Algorithm attend(const std::string &name, const Numerics &n, Keys keys) {
    Builder f(name, n);
    Dim H = f.dim("H"), S = f.dim("S"), T = f.dim("T"), D = f.dim("D"), E = f.dim("E");
    Tile q = f.input("q", {H, S, D});
    Tile k = f.input("k", {H, T, D});
    Tile v = f.input("v", {H, T, E});
    Tile root(&f, rsqrt(Tile(&f, cast(n.compute, extent("D")), {})).value(), {});
    Tile scaled = (q * root).named("scaled");           // (H, S, D)
    Tile scores = dot(scaled, k, {D}).named("scores");  // (H, S, T)
    Tile where;
    if (keys == Keys::earlier) where = f.index(T) <= f.index(S);
    if (keys == Keys::kept) where = f.input("keep", {T}, DType::boolean);
    std::vector<Tile> parts = f.fold(online_softmax_monoid(n.accumulate, "E"), {scores, v}, {"T"}, where);
    return f.output("o", parts[2] / parts[1]).build();  // (H, S, E)
}

}  // namespace

Algorithm attention(const Numerics &n) { return attend("attention", n, Keys::all); }
Algorithm attention_causal(const Numerics &n) { return attend("attention_causal", n, Keys::earlier); }
Algorithm attention_kept(const Numerics &n) { return attend("attention_kept", n, Keys::kept); }

}  // namespace tessera::library

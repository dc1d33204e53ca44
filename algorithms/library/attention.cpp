#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

namespace {

enum class Keys : uint8_t { all, earlier, kept };  // that a query sees

// q / sqrt(D)
Tile scaled_by_width(const Tile &q, const Dim &D) {
    Builder &f = q.builder();
    const Tile root(&f, rsqrt(Tile(&f, cast(f.numerics().compute, extent(D.name)), {})).value(), {});
    return (q * root).named("scaled");
}

Algorithm attend(const std::string &name, const Numerics &n, Keys keys) {
    Builder f(name, n);
    Dim H = f.dim("H"), S = f.dim("S"), T = f.dim("T"), D = f.dim("D"), E = f.dim("E");
    Tile q = f.input("q", {H, S, D});
    Tile k = f.input("k", {H, T, D});
    Tile v = f.input("v", {H, T, E});
    Tile scores = dot(scaled_by_width(q, D), k, {D}).named("scores");  // (H, S, T)
    if (keys == Keys::kept) {
        const Tile keep = f.input("keep", {T}, DType::boolean);
        return f.output("o", online_softmax(scores, v, T, E, keep)).build();  // (H, S, E)
    }
    const Tile where = keys == Keys::earlier ? f.index(T) <= f.index(S) : Tile();
    return f.output("o", online_softmax(scores, v, T, E, where)).build();  // (H, S, E)
}

}  // namespace

Algorithm attention(const Numerics &n) { return attend("attention", n, Keys::all); }
Algorithm attention_causal(const Numerics &n) { return attend("attention_causal", n, Keys::earlier); }
Algorithm attention_kept(const Numerics &n) { return attend("attention_kept", n, Keys::kept); }

std::vector<Option> grouped_attention_options() {
    return {yes_or_no("causal", "query i sees keys up to position + i"),
            {"window", "of the keys up to its own, how many a query sees; 0: all", 0, 0, INT32_MAX},
            yes_or_no("mask", "mask[S, T] is added to the scores")};
}

Algorithm attention_grouped(const Numerics &n, const Options &o) {
    Builder f("attention_grouped", n);
    Dim H = f.dim("H"), G = f.dim("G"), S = f.dim("S"), T = f.dim("T"), D = f.dim("D"), E = f.dim("E");
    Tile q = f.input("q", {H, G, S, D});
    Tile k = f.input("k", {H, T, D});
    Tile v = f.input("v", {H, T, E});
    Tile scores = dot(scaled_by_width(q, D), k, {D}).named("scores");  // (H, G, S, T)
    Tile where;
    if (o.at("mask")) scores = scores + cast(n.accumulate, f.input("mask", {S, T}));
    if (o.at("causal") || o.at("window")) {
        const Tile own = f.index(S) + cast(DType::index, f.parameter("position", DType::i32, 0)), key = f.index(T);
        if (o.at("causal")) where = key <= own;
        if (o.at("window")) scores = select(own - static_cast<double>(o.at("window")) < key, scores, f.scalar(n.accumulate, -INFINITY));
    }
    if (o.at("mask") || o.at("window")) scores = scores.named("masked");
    return f.output("o", online_softmax(scores, v, T, E, where)).build();  // (H, G, S, E)
}

Algorithm attention_decode(const Numerics &n) {
    Builder f("attention_decode", n);
    Dim H = f.dim("H"), G = f.dim("G"), T = f.dim("T"), D = f.dim("D"), E = f.dim("E");
    Tile q = f.input("q", {H, G, D});
    Tile k = f.input("k", {H, T, D});
    Tile v = f.input("v", {H, T, E});
    Tile scores = dot(scaled_by_width(q, D), k, {D}).named("scores");  // (H, G, T)
    return f.output("o", online_softmax(scores, v, T, E)).build();     // (H, G, E)
}

}  // namespace tessera::library

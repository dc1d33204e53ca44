#include "algorithms/build/selection.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

static Dim at_least(Builder &f, const std::string &name, int64_t least) {
    Dim d = symbolic_dim(name);
    d.min = least;
    return f.dim(d);
}

Algorithm argmax(const Numerics &n) {
    Builder f("argmax", n);
    Dim M = f.dim("M"), N = at_least(f, "N", 1);
    Tile x = f.input("x", {M, N});
    return f.output("at", largest(x, N, 1)[0].at).build();  // (M)
}

std::vector<Option> top_k_options() { return {{"k", "how many", 4, 1, 16}}; }

Algorithm top_k(const Numerics &n, const Options &o) {
    Builder f("top_k", n);
    Dim M = f.dim("M"), N = at_least(f, "N", o.at("k")), K = f.dim("K", o.at("k"));
    Tile x = f.input("x", {M, N});
    std::vector<Tile> values, positions;
    for (const Ranked &one : largest(x, N, static_cast<int>(K.value)))
        values.push_back(from_order_key(one.key)), positions.push_back(one.at);
    return f.output("y", broadcast(stack(values, K), {M, K})).output("at", broadcast(stack(positions, K), {M, K})).build();
}

std::vector<Option> sort_options() { return {{"length", "how many are sorted", 64, 1, 1024}}; }

Algorithm sort(const Numerics &n, const Options &o) {
    Builder f("sort", n);
    Dim M = f.dim("M"), N = f.dim("N", o.at("length"));
    Tile x = f.input("x", {M, N});
    const Ranked all = sorted(x, N);
    return f.output("y", from_order_key(all.key)).output("at", broadcast(all.at, {M, N})).build();
}

}  // namespace tessera::library

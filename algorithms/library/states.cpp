#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

Algorithm ring_append(const Numerics &n) {
    Builder f("ring_append", n);
    Dim B = f.dim("B"), W = symbolic_dim("W"), T = f.dim("T"), D = f.dim("D");
    W.min = 1;
    W = f.dim(W);
    Tile cache = f.state("cache", {B, W, D});
    Tile x = f.input("x", {B, T, D});
    f.parameter("position", DType::i64, 0, INT64_MAX - INT32_MAX);  // of the first element; that of the last one has a number too
    Expr width = cast(DType::i64, extent("W"));
    Expr slot = (parameter("position", DType::i64) + cast(DType::i64, variable("T"))) % width;
    Tile at(&f, bounded(slot, 0, extent("W")), {"T"});
    f.update("append", cache, {f.index(B), at, f.index(D)}, x);
    return f.build();
}

std::vector<Option> adamw_options() {
    return {yes_or_no("narrow", "weights[N], the new w rounded to the policy's storage type, is an output")};
}

// Loshchilov, Hutter, ICLR 2019; the order of operations is PyTorch's. Moments and weights are updates apart, which a schedule joins.
Algorithm adamw(const Numerics &n, const Options &o) {
    Builder f("adamw", n);
    const Dim N = f.dim("N");
    const Tile m = f.state("m", {N}), v = f.state("v", {N}), w = f.state("w", {N}), g = f.input("g", {N});
    const auto number = [&](const char *name, const LowerEnd &least, const UpperEnd &most = {}) {
        return f.parameter(name, n.compute, least, most);
    };
    const Tile beta1 = number("beta1", 0, below(1)), beta2 = number("beta2", 0, below(1)), one = f.scalar(n.compute, 1);
    const Tile first = (m * beta1 + g * (one - beta1)).named("first");                           // (N)
    const Tile second = (v * beta2 + g * g * (one - beta2)).named("second");                     // (N)
    const Tile length = sqrt(second) * number("scale", above(0)) + number("epsilon", above(0));  // (N)
    Tile next = w * number("decay", 0, 1) - number("step", 0) * (first / length);                // (N)
    if (o.at("narrow")) next = next.named("next");  // once for both: the weights are what w becomes, rounded
    f.update("update_w", w, {f.index(N)}, next);
    f.update("update_m", m, {f.index(N)}, first);
    f.update("update_v", v, {f.index(N)}, second);
    if (o.at("narrow")) f.output("weights", next, n.storage);
    return f.build();
}

Algorithm sgd_momentum(const Numerics &n) {
    Builder f("sgd_momentum", n);
    const Dim N = f.dim("N");
    const Tile m = f.state("m", {N}), w = f.state("w", {N}), g = f.input("g", {N});
    const auto number = [&](const char *name, const UpperEnd &most = {}) { return f.parameter(name, n.compute, 0, most); };
    const Tile momentum = number("momentum", 1), decay = number("decay"), rate = number("rate");
    const Tile velocity = (m * momentum + (g + w * decay)).named("velocity");  // (N)
    f.update("update_w", w, {f.index(N)}, w - rate * velocity);
    f.update("update_m", m, {f.index(N)}, velocity);
    return f.build();
}

}  // namespace tessera::library

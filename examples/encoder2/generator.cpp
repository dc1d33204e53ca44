// What the encoder computes, declared once: a causal encoder of L blocks over bytes. Training takes gradients of its loss, with dropout.
// What it is judged by and writes with are its loss and its logits, without, perhaps of weights in 8 bits, and of the next byte alone with
// a cache of keys and values. And what a step does with gradients.
#include "generators/generator.h"
#include "algorithms/build/cache.h"
#include "algorithms/build/losses.h"
#include "algorithms/build/quantized.h"
#include "algorithms/build/random.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/transform/derivatives/derivatives.h"

using namespace tessera;

namespace {

// At least one.
Dim some(const std::string &name) {
    Dim dim = symbolic_dim(name);
    dim.min = 1;
    return dim;
}

struct Weight {
    std::string name;
    std::vector<std::string> dims;
};
// The weights of a block; those of all blocks have a dim L in front. Those of one dim are scales of norms.
const std::vector<Weight> weights_of_block = {{"norm_attention", {"D"}},  {"query", {"D", "H", "E"}}, {"key", {"D", "H", "E"}},
                                              {"value", {"D", "H", "E"}}, {"out", {"H", "E", "D"}},   {"norm_mlp", {"D"}},
                                              {"up", {"D", "F"}},         {"down", {"F", "D"}}};

// A text is judged and written whole; continuing, there are the bytes behind those whose keys and values a cache has.
enum class Use { training, judging, writing, continuing };
// The weights of the MLP: as all others, or codes of i8 whose last dim is the one that is folded, with a scale for each of their rows.
enum class Mlp { whole, int8 };

std::vector<std::string> dims_of_codes(const Weight &weight) { return {weight.dims[1], weight.dims[0]}; }
bool is_of_mlp(const Weight &weight) { return weight.name == "up" || weight.name == "down"; }

// Numbers are dropped out in training alone, by parameters that only then are there. What x is multiplied by is a stage of its own, drawn
// once for each number forward and once more backward, and not in each step of the products that read it.
class Dropout {
public:
    Dropout(Builder &f, Use use) : f_(f), is_there_(use == Use::training) {
        if (is_there_)
            seed_ = f.parameter("seed", DType::i64), step_ = f.parameter("step", DType::i64),
            rate_ = f.parameter("rate", DType::f32, 0, below(1));
    }
    Tile of(const Tile &x, const std::string &name, uint32_t number) const {
        return is_there_ ? (x * kept(x.dtype(), x.dims(), name, number)).named(name + "_left") : x;
    }
    // The values that attention adds up, by whose weights of these dims some are left out. The sum of weights stays that of all.
    Tile of_weights(const Tile &values, const std::vector<std::string> &dims, const std::string &name, uint32_t number) const {
        return is_there_ ? values * kept(values.dtype(), dims, name, number) : values;
    }
    // For the callee of a round: every round draws numbers of its own.
    std::map<std::string, Tile> of_round(const std::string &L) const {
        if (!is_there_) return {};
        const Expr step = step_.value() * cast(DType::i64, extent(L)) + cast(DType::i64, variable(L));
        return {{"seed", seed_}, {"step", Tile(&f_, step, {})}, {"rate", rate_}};
    }

private:
    Builder &f_;
    bool is_there_;
    Tile seed_, step_, rate_;

    Tile kept(DType type, const std::vector<std::string> &dims, const std::string &name, uint32_t number) const {
        return dropout(f_, Tile(&f_, constant(type, 1), dims), {seed_, step_, number}, rate_).named(name + "_kept");
    }
};

// y[B, S, D]: x plus what each place attends to among those up to its own, plus the MLP of that.
Algorithm block(const Numerics &n, Use use, Mlp mlp) {
    Builder f("block", n);
    const Dim B = f.dim(some("B")), S = f.dim(some("S")), D = f.dim(some("D")), H = f.dim(some("H")), E = f.dim(some("E")),
              F = f.dim(some("F"));
    const Tile given = f.input("x", {B, S, D});
    std::map<std::string, Tile> w;
    for (const Weight &weight : weights_of_block) {
        const bool is_codes = mlp == Mlp::int8 && is_of_mlp(weight);
        std::vector<Dim> dims;
        for (const std::string &dim : is_codes ? dims_of_codes(weight) : weight.dims) dims.push_back(f.dim_named(dim));
        w[weight.name] = is_codes ? dequantize(quantized(f, weight.name, dims, {})) : f.input(weight.name, dims);
    }
    const Dropout dropout(f, use);

    const auto normal = [&](const char *name, const Tile &x) {
        const auto scope = f.scope(name);
        return rmsnorm(x, w[name], D).named("y");
    };
    const Tile a = normal("norm_attention", given);  // (B, S, D)
    const auto head = [&](const char *name) {
        return Tile(&f, dot(a, w[name], {D}).value(), {"B", "H", "S", "E"}).named(std::string("of_") + name);
    };
    const Tile query = head("query"), key = head("key"), value = head("value");
    Tile seen;  // (B, H, S, E)
    if (use == Use::continuing) {
        KVCache cache = kv_cache(f, "cache", {B, H, E, E});
        const Tile first = cache.length();
        cache.append(key, value);
        seen = attend(query, cache, first + f.index(S)).named("seen");
    } else {
        const Dim T = f.dim(derived_dim("T", extent("S")));
        const auto of_keys = [&](const Tile &x) { return x.at({{"S", variable("T")}}, {"B", "H", "T", "E"}); };
        const Tile scale = rsqrt(Tile(&f, cast(n.compute, extent("E")), {}));
        const Tile scores = dot(query * scale, of_keys(key), {E}).named("scores");  // (B, H, S, T)
        const Tile values = dropout.of_weights(of_keys(value), {"B", "H", "S", "T"}, "weights", 3);
        seen = online_softmax(scores, values, T, E, f.index(T) <= f.index(S)).named("seen");
    }
    const Tile x = (given + dropout.of(dot(seen, w["out"], {H, E}).named("heeded"), "heeded", 1)).named("middle");  // (B, S, D)
    const Tile hidden = gelu(dot(normal("norm_mlp", x), w["up"], {D})).named("hidden");                             // (B, S, F)
    return f.output("y", x + dropout.of(dot(hidden, w["down"], {F}).named("more"), "more", 2)).build();
}

// The blocks between an embedding of bytes and scores of the next one. `loss` is the mean over all places of -log(its probability of
// targets[B, S]), in nats. Writing, there are no targets, and logits[B, S, V] come out. Continuing, a byte's place is how many the cache
// has and its number in ids, and logits[B, V] of the byte behind the last one come out.
Algorithm encoder(const std::string &name, const Numerics &n, Use use, Mlp mlp = Mlp::whole) {
    Builder f(name, n);
    const Dim B = f.dim(some("B")), S = f.dim(some("S")), D = f.dim(some("D")), V = f.dim(some("V")), L = f.dim(some("L"));
    for (const char *dim : {"H", "E", "F"}) f.dim(some(dim));
    const bool continues = use == Use::continuing, has_targets = use == Use::training || use == Use::judging;
    const Dim P = continues ? f.dim(some("P")) : S;
    const Tile ids = f.input("ids", {B, S}, DType::i32);
    const Tile targets = has_targets ? f.input("targets", {B, S}, DType::i32) : Tile();
    const Tile table = f.input("table", {V, D}), places = f.input("places", {P, D});
    const Dropout dropout(f, use);
    std::vector<Tile> weights;
    for (const Weight &weight : weights_of_block) {
        const bool is_codes = mlp == Mlp::int8 && is_of_mlp(weight);
        std::vector<Dim> dims = {L};
        for (const std::string &dim : is_codes ? dims_of_codes(weight) : weight.dims) dims.push_back(f.dim_named(dim));
        if (!is_codes) {
            weights.push_back(f.input(weight.name, dims));
            continue;
        }
        const Quantized codes = quantized(f, weight.name, dims, {});
        weights.insert(weights.end(), {codes.codes, codes.scales});
    }
    Tile at = places;
    if (continues) {
        const Dim H = f.dim_named("H"), E = f.dim_named("E");
        const CacheTensors pool = cache_tensors(f, "cache", {B, H, E, E}, {}, {L});
        for (const Tile &t : pool.arguments()) weights.push_back(t);
        const Tile place = cast(DType::index, pool.length) + f.index(S);
        at = places.at({{"P", bounded(place, 0, extent("P")).value()}}, {"B", "S", "D"});
    }
    const Tile embedded = table.at({{"V", bounded(ids, 0, extent("V")).value()}}, {"B", "S", "D"}) + at;
    std::vector<Tile> arguments = {cast(n.storage, dropout.of(embedded, "bytes", 0)).named("embedded")};
    arguments.insert(arguments.end(), weights.begin(), weights.end());
    Tile x = f.repeat("layers", block(n, use, mlp), Repeat{"L", {{"x", "y"}}, {}, ""}, arguments, dropout.of_round("L"))[0];
    if (continues) x = x.at({{"S", extent("S") - Expr(1)}}, {"B", "D"});
    const Tile scale = f.input("norm_head", {D}), head = f.input("head", {D, V});
    const Tile logits = dot(rmsnorm(x, scale, D).named("normal"), head, {D}).named("scores");  // (B, S, V)
    if (!has_targets) return f.output("logits", logits, n.compute).build();
    const Tile loss = softmax_cross_entropy(logits, targets, V);
    f.output("loss", loss, n.compute);
    if (use == Use::training) f.output("scaled", loss * f.parameter("loss_scale", n.compute, above(0)), n.compute);
    return f.build();
}

// Codes of the MLP's weights, and their scales.
Algorithm codes_of_mlp(const Numerics &n) {
    Builder f("encoder2_codes", n);
    for (const char *dim : {"L", "D", "F"}) f.dim(some(dim));
    for (const Weight &weight : weights_of_block) {
        if (!is_of_mlp(weight)) continue;
        const std::vector<std::string> rows = dims_of_codes(weight);
        const Tile given = f.input(weight.name, {f.dim_named("L"), f.dim_named(weight.dims[0]), f.dim_named(weight.dims[1])});
        const Quantized made = quantize(Tile(&f, given.value(), {"L", rows[0], rows[1]}), weight.name, {});
        f.output(weight.name + "_codes", made.codes, DType::i8).output(weight.name + "_code_scales", made.scales, DType::f32);
    }
    return f.build();
}

// The loss, and the gradient of each weight, <weight>.grad, of the loss times loss_scale.
Algorithm gradients(const Numerics &n) {
    const Algorithm loss = encoder("encoder2", n, Use::training);
    By by;
    by.of = {"scaled"};
    for (const Tensor &t : loss.tensors)
        if (is_float(t.dtype)) by.by.push_back(t.name);
    Algorithm made = value_and_grad(loss, by);
    made.name = "encoder2_gradients";
    return made;
}

// How long a gradient is; infinite or NaN where a number of it is, or is so large that its square is.
Algorithm length(const Numerics &n) {
    Builder f("encoder2_length", n);
    const Dim N = f.dim("N");
    const Tile g = f.input("g", {N});
    return f.output("length", sqrt(dot(g, g, {N}).named("squares")), n.compute).build();
}

// A step of AdamW on all weights as one vector w[N], with moments m and v, by a gradient times `cut`: what clips it, and takes the scale of
// the loss away.
Algorithm update(const Numerics &n) {
    Builder f("encoder2_update", n);
    const Dim N = f.dim("N");
    const Tile m = f.state("m", {N}), v = f.state("v", {N}), w = f.state("w", {N}), g = f.input("g", {N});
    const Tile cut = (g * f.parameter("cut", n.compute, above(0))).named("cut_gradient");         // (N)
    const Algorithm adamw = library::adamw(numerics_named(name_of(n.compute)), {{"narrow", 0}});  // masters and moments, whatever is stored
    std::map<std::string, Tile> parameters;
    for (const Parameter &p : adamw.parameters) parameters[p.name] = f.parameter(p.name, p.dtype);
    f.call("adamw", adamw, {m, v, w, cut}, parameters);
    return f.build();
}

}  // namespace

int main(int argc, char **argv) {
    Registry registry;
    registry.add("encoder2_gradients", "loss, and the gradients of all weights, of B texts of S bytes, with dropout", gradients);
    registry.add("encoder2_loss", "loss of B texts of S bytes",
                 [](const Numerics &n) { return encoder("encoder2_loss", n, Use::judging); });
    registry.add("encoder2_logits", "logits[B, S, V] of the byte behind each of B texts of S bytes",
                 [](const Numerics &n) { return encoder("encoder2_logits", n, Use::writing); });
    registry.add("encoder2_next", "logits[B, V] of the byte behind S bytes that follow those of a cache, which they are added to",
                 [](const Numerics &n) { return encoder("encoder2_next", n, Use::continuing); });
    registry.add("encoder2_codes", "the MLP's weights as codes of i8, and their scales", codes_of_mlp);
    registry.add("encoder2_loss_int8", "loss of B texts of S bytes by an MLP in codes of i8",
                 [](const Numerics &n) { return encoder("encoder2_loss_int8", n, Use::judging, Mlp::int8); });
    registry.add("encoder2_next_int8", "logits[B, V] of the next byte by an MLP in codes of i8, with a cache",
                 [](const Numerics &n) { return encoder("encoder2_next_int8", n, Use::continuing, Mlp::int8); });
    registry.add("encoder2_length", "how long the gradients g[N] are", length);
    registry.add("encoder2_update", "a step of AdamW on all weights w[N], by gradients g[N] times a number", update);
    return generator_main(argc, argv, registry);
}

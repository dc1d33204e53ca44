// What the encoder computes, declared once: a causal encoder of L blocks over bytes. Training takes gradients of its loss, with dropout.
// What it is judged by and writes with are its loss and its logits, without. And what a step does with gradients.
#include "generators/generator.h"
#include "algorithms/build/losses.h"
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

enum class Use { training, judging, writing };

// Numbers are dropped out in training alone, by parameters that only then are there.
class Dropout {
public:
    Dropout(Builder &f, Use use) : f_(f), is_there_(use == Use::training) {
        if (is_there_)
            seed_ = f.parameter("seed", DType::i64), step_ = f.parameter("step", DType::i64),
            rate_ = f.parameter("rate", DType::f32, 0, below(1));
    }
    Tile of(const Tile &x, uint32_t number) const { return is_there_ ? dropout(f_, x, {seed_, step_, number}, rate_) : x; }
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
};

// y[B, S, D]: x plus what each place attends to among those up to its own, plus the MLP of that.
Algorithm block(const Numerics &n, Use use) {
    Builder f("block", n);
    const Dim B = f.dim(some("B")), S = f.dim(some("S")), D = f.dim(some("D")), H = f.dim(some("H")), E = f.dim(some("E")),
              F = f.dim(some("F"));
    const Dim T = f.dim(derived_dim("T", extent("S")));
    const Tile given = f.input("x", {B, S, D});
    std::map<std::string, Tile> w;
    for (const Weight &weight : weights_of_block) {
        std::vector<Dim> dims;
        for (const std::string &dim : weight.dims) dims.push_back(f.dim_named(dim));
        w[weight.name] = f.input(weight.name, dims);
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
    const auto of_keys = [&](const Tile &x) { return x.at({{"S", variable("T")}}, {"B", "H", "T", "E"}); };
    const Tile scale = rsqrt(Tile(&f, cast(n.compute, extent("E")), {}));
    const Tile scores = dot(head("query") * scale, of_keys(head("key")), {E}).named("scores");  // (B, H, S, T)
    const Tile seen = online_softmax(scores, of_keys(head("value")), T, E, f.index(T) <= f.index(S)).named("seen");
    const Tile x = (given + dropout.of(dot(seen, w["out"], {H, E}).named("heeded"), 1)).named("middle");  // (B, S, D)
    const Tile hidden = gelu(dot(normal("norm_mlp", x), w["up"], {D})).named("hidden");                   // (B, S, F)
    return f.output("y", x + dropout.of(dot(hidden, w["down"], {F}).named("more"), 2)).build();
}

// The blocks between an embedding of bytes and scores of the next one. `loss` is the mean over all places of -log(its probability of
// targets[B, S]), in nats; writing, there are no targets, and logits[B, S, V] come out.
Algorithm encoder(const std::string &name, const Numerics &n, Use use) {
    Builder f(name, n);
    const Dim B = f.dim(some("B")), S = f.dim(some("S")), D = f.dim(some("D")), V = f.dim(some("V")), L = f.dim(some("L"));
    for (const char *dim : {"H", "E", "F"}) f.dim(some(dim));
    const Tile ids = f.input("ids", {B, S}, DType::i32);
    const Tile targets = use == Use::writing ? Tile() : f.input("targets", {B, S}, DType::i32);
    const Tile table = f.input("table", {V, D}), places = f.input("places", {S, D});
    const Dropout dropout(f, use);
    const Tile embedded = table.at({{"V", bounded(ids, 0, extent("V")).value()}}, {"B", "S", "D"}) + places;
    std::vector<Tile> arguments = {cast(n.storage, dropout.of(embedded, 0)).named("embedded")};
    for (const Weight &weight : weights_of_block) {
        std::vector<Dim> dims = {L};
        for (const std::string &dim : weight.dims) dims.push_back(f.dim_named(dim));
        arguments.push_back(f.input(weight.name, dims));
    }
    const Tile x = f.repeat("layers", block(n, use), Repeat{"L", {{"x", "y"}}, {}, ""}, arguments, dropout.of_round("L"))[0];
    const Tile scale = f.input("norm_head", {D}), head = f.input("head", {D, V});
    const Tile logits = dot(rmsnorm(x, scale, D).named("normal"), head, {D}).named("scores");  // (B, S, V)
    if (use == Use::writing) return f.output("logits", logits, DType::f32).build();
    return f.output("loss", softmax_cross_entropy(logits, targets, V), DType::f32).build();
}

// The loss, and the gradient of each weight, <weight>.grad.
Algorithm gradients(const Numerics &n) {
    const Algorithm loss = encoder("encoder2", n, Use::training);
    By by;
    for (const Tensor &t : loss.tensors)
        if (is_float(t.dtype)) by.by.push_back(t.name);
    Algorithm made = value_and_grad(loss, by);
    made.name = "encoder2_gradients";
    return made;
}

// A step of AdamW on all weights as one vector w[N], with moments m and v, by a gradient that is cut to `longest`; `length` is how long it
// was before.
Algorithm update(const Numerics &n) {
    Builder f("encoder2_update", n);
    const Dim N = f.dim("N");
    const Tile m = f.state("m", {N}), v = f.state("v", {N}), w = f.state("w", {N}), g = f.input("g", {N});
    const Tile length = sqrt(dot(g, g, {N}).named("squares")).named("how_long");
    const Tile longest = f.parameter("longest", n.compute, above(0));
    const Tile cut = (g * min(longest / max(length, 1e-30), 1.0)).named("cut");      // (N)
    const Algorithm adamw = library::adamw(numerics_named("f32"), {{"narrow", 0}});  // masters and moments, whatever is stored
    std::map<std::string, Tile> parameters;
    for (const Parameter &p : adamw.parameters) parameters[p.name] = f.parameter(p.name, p.dtype);
    f.call("adamw", adamw, {m, v, w, cut}, parameters);
    return f.output("length", length, DType::f32).build();
}

}  // namespace

int main(int argc, char **argv) {
    Registry registry;
    registry.add("encoder2_gradients", "loss, and the gradients of all weights, of B texts of S bytes, with dropout", gradients);
    registry.add("encoder2_loss", "loss of B texts of S bytes",
                 [](const Numerics &n) { return encoder("encoder2_loss", n, Use::judging); });
    registry.add("encoder2_logits", "logits[B, S, V] of the byte behind each of B texts of S bytes",
                 [](const Numerics &n) { return encoder("encoder2_logits", n, Use::writing); });
    registry.add("encoder2_update", "a step of AdamW on all weights w[N], by gradients g[N] that are clipped", update);
    return generator_main(argc, argv, registry);
}

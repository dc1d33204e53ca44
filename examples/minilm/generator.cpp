// What is computed: unit vectors of sentences, by a BERT encoder whose layers are the library's. How is in schedules/.
#include "generators/generator.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

using namespace tessera;

// At least one.
static Dim some(const std::string &name, int64_t max = INT32_MAX) {
    Dim dim = symbolic_dim(name);
    dim.min = 1, dim.max = max;
    return dim;
}

// y[B, D] of the T tokens ids[B, T] of B sentences, where keep[B, T] holds; of each sentence it holds somewhere. `words` are the embeddings
// of V words, `places` those of P positions, `type` that of a first segment; the weights of L layers are as `encoder` takes them.
static Algorithm sentence_embedding(const Numerics &n, const Options &o) {
    Builder f("sentence_embedding", n);
    const int64_t heads = o.at("heads");
    Dim width = some("D");
    width.multiple_of = width.min = heads;
    const Dim B = f.dim(some("B")), T = f.dim(some("T")), H = f.dim("H", heads), D = f.dim(width), V = f.dim(some("V")),
              P = f.dim(some("P"));
    const Dim M = f.dim(derived_dim("M", extent("B") * extent("T"))), C = f.dim(derived_dim("C", extent("D") * 3));
    const Dim O = f.dim(derived_dim("O", extent("D"))), F = f.dim("F"), L = f.dim("L");

    const Tile ids = f.input("ids", {B, T}, DType::i32), keep = f.input("keep", {B, T}, DType::boolean);
    const Tile words = f.input("words", {V, D}), places = f.input("places", {P, D}), type = f.input("type", {D});
    const Tile gamma = f.input("gamma", {D}), beta = f.input("beta", {D});

    // Token m is token m % T of sentence m / T.
    const Expr m = variable("M"), row = bounded(m / extent("T"), 0, extent("B")), place = m % extent("T");
    const Tile id = ids.at({{"B", row}, {"T", bounded(place, 0, extent("T"))}}, {"M"});
    const Tile word = words.at({{"V", bounded(id, 0, extent("V")).value()}}, {"M", "D"});
    const Tile embedded = (word + places.at({{"P", bounded(place, 0, extent("P"))}}, {"M", "D"}) + type).named("embedded");  // (M, D)
    const Tile x = cast(n.storage, layernorm(embedded, gamma, beta, D, 1e-12)).named("x");                                   // (M, D)

    // What the encoder takes behind x and keep, it says itself; the caller's own first two norms have these names already.
    const Algorithm layers = library::encoder(n, o);
    std::vector<Tile> arguments = {x, keep};
    for (const Tensor &tensor : layers.tensors) {
        if (tensor.name == "x" || tensor.name == "keep") continue;
        std::vector<Dim> dims;
        for (const std::string &dim : tensor.dims) dims.push_back(f.dim_named(dim));
        const bool norm = tensor.name == "gamma" || tensor.name == "beta";
        arguments.push_back(f.input(norm ? tensor.name + "_attention" : tensor.name, dims, tensor.dtype));
    }
    const Tile encoded = f.call("encoder", layers, arguments)[0];  // (M, D)

    // The mean over the tokens that are kept, at length one.
    const Tile tokens = encoded.at({{"M", variable("B") * extent("T") + variable("T")}}, {"B", "T", "D"});
    const Tile pooled = f.fold(sum_monoid(n.compute), {tokens}, {"T"}, keep)[0].named("pooled");             // (B, D)
    const Tile count = sum(select(keep, f.scalar(n.compute, 1), f.scalar(n.compute, 0)), T).named("count");  // (B)
    const Tile mean = (pooled / count).named("mean");                                                        // (B, D)
    const Tile length = sqrt(dot(mean, mean, {D}).named("squares"));                                         // (B)
    return f.output("y", mean / max(length, 1e-12), DType::f32).build();
}

int main(int argc, char **argv) {
    Registry registry;
    registry.add("sentence_embedding", "y[B, D] = unit vectors of B sentences of T tokens, by L layers of BERT", library::encoder_options(),
                 sentence_embedding);
    return generator_main(argc, argv, registry);
}

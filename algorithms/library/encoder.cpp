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

std::vector<Option> encoder_options() { return {{"heads", "of each layer; D is a multiple of them", 12, 1, 1024}}; }

namespace {

// Dims that both have. Axes of one extent that one call takes apart have names of their own.
struct EncoderDims {
    Dim B, T, H, D, M, C, O, F;
    EncoderDims(Builder &f, int64_t heads) : B(f.dim(some("B"))), T(f.dim(some("T"))), H(f.dim("H", heads)) {
        Dim width = some("D");
        width.multiple_of = width.min = heads;
        D = f.dim(width);
        M = f.dim(derived_dim("M", extent("B") * extent("T")));
        C = f.dim(derived_dim("C", extent("D") * 3));
        O = f.dim(derived_dim("O", extent("D")));
        F = f.dim("F");
    }
    // At least one.
    static Dim some(const std::string &name) {
        Dim dim = symbolic_dim(name);
        dim.min = 1;
        return dim;
    }
};

// The inputs of a layer behind x and keep, each with `outer` dims in front.
std::vector<Tile> weights(Builder &f, const EncoderDims &d, const std::vector<Dim> &outer) {
    std::vector<Tile> all;
    auto input = [&](const std::string &name, std::vector<Dim> dims) {
        dims.insert(dims.begin(), outer.begin(), outer.end());
        all.push_back(f.input(name, dims));
    };
    input("w_qkv", {d.D, d.C}), input("b_qkv", {d.C});
    input("w_out", {d.D, d.O}), input("b_out", {d.O});
    input("gamma", {d.D}), input("beta", {d.D});
    input("w_up", {d.D, d.F}), input("b_up", {d.F});
    input("w_down", {d.F, d.D}), input("b_down", {d.D});
    input("gamma_out", {d.D}), input("beta_out", {d.D});
    return all;
}

}  // namespace

Algorithm encoder_layer(const Numerics &n, const Options &o) {
    Builder f("encoder_layer", n);
    const int64_t heads = o.at("heads");
    const EncoderDims d(f, heads);
    const Dim S = f.dim(derived_dim("S", extent("T"))), E = f.dim(derived_dim("E", extent("D") / Expr(heads))),
              V = f.dim(derived_dim("V", extent("E")));
    const Tile x = f.input("x", {d.M, d.D}), keep = f.input("keep", {d.B, d.T}, DType::boolean);
    const std::vector<Tile> w = weights(f, d, {});
    const Tile qkv = f.call("qkv", linear(n), {x, w[0], w[1]})[0];  // (M, C)
    // Of one sentence: its tokens' queries, keys or values by heads.
    auto part = [&](int64_t number, const Dim &tokens, const Dim &width) {
        return qkv.at({{"M", variable("B") * extent("T") + variable(tokens.name)},
                       {"C", extent("D") * number + variable("H") * extent("E") + variable(width.name)}},
                      {"B", "H", tokens.name, width.name});
    };
    const Tile attended = f.repeat("attention", attention_kept(n), {.dim = "B", .stacked = {"o"}},
                                   {part(0, S, E), part(1, d.T, E), part(2, d.T, V), keep})[0];  // (B, H, S, V)
    // Token m is that of sentence m / T, and column c that of head c / E.
    const Expr m = variable("M"), c = variable("D");
    auto digit = [&](const Expr &e, const Dim &dim) { return bounded(e, Expr(0), extent(dim.name)); };
    const Tile tokens = attended.at({{"B", digit(m / extent("T"), d.B)},
                                     {"H", digit(c / extent("E"), d.H)},
                                     {"S", digit(m % extent("T"), d.T)},
                                     {"V", digit(c % extent("E"), E)}},
                                    {"M", "D"});
    const Tile merged = cast(n.storage, tokens).named("merged");
    const Tile out = f.call("out", linear(n), {merged, w[2], w[3]})[0].at({{"O", c}}, {"M", "D"});
    const Tile hidden = f.call("norm", residual_layernorm(n), {out, x, w[4], w[5]})[0];  // (M, D)
    return f.output("y", f.call("ffn", feed_forward(n), {hidden, w[6], w[7], w[8], w[9], w[10], w[11]})[0]).build();
}

Algorithm encoder(const Numerics &n, const Options &o) {
    Builder f("encoder", n);
    const EncoderDims d(f, o.at("heads"));
    const Dim L = f.dim("L");
    std::vector<Tile> arguments = {f.input("x", {d.M, d.D}), f.input("keep", {d.B, d.T}, DType::boolean)};
    for (const Tile &w : weights(f, d, {L})) arguments.push_back(w);
    return f.output("y", f.repeat("layers", encoder_layer(n, o), {"L", {{"x", "y"}}}, arguments)[0]).build();
}

}  // namespace tessera::library

#include <numeric>

#include "algorithms/build/tile_functions.h"
#include "algorithms/build/weights.h"
#include "algorithms/library/library.h"

namespace tessera::library {

namespace {

// What a product takes behind x, each with `outer` dims in front: weights as the policy keeps them, and a bias.
std::vector<Tile> product_inputs(Builder &f, const std::string &name, const std::vector<Dim> &outer, const Dim &K, const Dim &N) {
    std::vector<Dim> columns = outer;
    columns.push_back(N);
    std::vector<Tile> all = weights(f, "w_" + name, outer, K, N).tensors;
    all.push_back(f.input("b_" + name, columns));
    return all;
}

std::vector<Tile> joined(std::vector<Tile> tiles, std::initializer_list<std::vector<Tile>> more) {
    for (const std::vector<Tile> &some : more) tiles.insert(tiles.end(), some.begin(), some.end());
    return tiles;
}

}  // namespace

Algorithm feed_forward(const Numerics &n) {
    Builder f("feed_forward", n);
    Dim M = f.dim("M"), D = f.dim(rows_of_weights("D", n)), F = f.dim(rows_of_weights("F", n));
    Tile x = f.input("x", {M, D});
    const std::vector<Tile> w_up = product_inputs(f, "up", {}, D, F), w_down = product_inputs(f, "down", {}, F, D);
    Tile gamma = f.input("gamma", {D}), beta = f.input("beta", {D});
    Tile hidden = f.call("up", linear_gelu(inside(n)), joined({x}, {w_up}))[0];      // (M, F)
    Tile update = f.call("down", linear(inside(n)), joined({hidden}, {w_down}))[0];  // (M, D)
    Tile y = f.call("norm", residual_layernorm(n), {update, x, gamma, beta})[0];     // (M, D)
    return f.output("y", y).build();
}

std::vector<Option> encoder_options() { return {{"heads", "of each layer; D is a multiple of them", 12, 1, 1024}}; }

namespace {

// Dims that both have. Axes of one extent that one call takes apart have names of their own.
struct EncoderDims {
    Dim B, T, H, D, M, C, O, F;
    EncoderDims(Builder &f, int64_t heads) : B(f.dim(some("B"))), T(f.dim(some("T"))), H(f.dim("H", heads)) {
        Dim width = some("D");
        width.multiple_of = std::lcm(heads, multiple_of_rows(f.numerics()));
        width.min = heads;
        D = f.dim(width);
        M = f.dim(derived_dim("M", extent("B") * extent("T")));
        C = f.dim(derived_dim("C", extent("D") * 3));
        O = f.dim(derived_dim("O", extent("D")));
        F = f.dim(rows_of_weights("F", f.numerics()));
    }
    // At least one.
    static Dim some(const std::string &name) {
        Dim dim = symbolic_dim(name);
        dim.min = 1;
        return dim;
    }
};

// The inputs of a layer behind x and keep, each with `outer` dims in front.
struct LayerInputs {
    std::vector<Tile> qkv, out, norm, up, down, norm_out;
    LayerInputs(Builder &f, const EncoderDims &d, const std::vector<Dim> &outer)
        : qkv(product_inputs(f, "qkv", outer, d.D, d.C)),
          out(product_inputs(f, "out", outer, d.D, d.O)),
          norm(norm_inputs(f, "", outer, d.D)),
          up(product_inputs(f, "up", outer, d.D, d.F)),
          down(product_inputs(f, "down", outer, d.F, d.D)),
          norm_out(norm_inputs(f, "_out", outer, d.D)) {}

private:
    static std::vector<Tile> norm_inputs(Builder &f, const std::string &name, std::vector<Dim> dims, const Dim &D) {
        dims.push_back(D);
        const Tile gamma = f.input("gamma" + name, dims);
        return {gamma, f.input("beta" + name, dims)};
    }
};

}  // namespace

Algorithm encoder_layer(const Numerics &n, const Options &o) {
    Builder f("encoder_layer", n);
    const int64_t heads = o.at("heads");
    const EncoderDims d(f, heads);
    const Dim S = f.dim(derived_dim("S", extent("T"))), E = f.dim(derived_dim("E", extent("D") / Expr(heads))),
              V = f.dim(derived_dim("V", extent("E")));
    const Tile x = f.input("x", {d.M, d.D}), keep = f.input("keep", {d.B, d.T}, DType::boolean);
    const LayerInputs w(f, d, {});
    const Tile qkv = f.call("qkv", linear(inside(n)), joined({x}, {w.qkv}))[0];  // (M, C)
    // One sentence: its tokens' queries, keys or values by heads.
    auto part = [&](int64_t number, const Dim &tokens, const Dim &width) {
        return qkv.at({{"M", variable("B") * extent("T") + variable(tokens.name)},
                       {"C", extent("D") * number + variable("H") * extent("E") + variable(width.name)}},
                      {"B", "H", tokens.name, width.name});
    };
    const Tile attended = f.repeat("attention", attention_kept(inside(n)), {.dim = "B", .stacked = {"o"}},
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
    const Tile out = f.call("out", linear(inside(n)), joined({merged}, {w.out}))[0].at({{"O", c}}, {"M", "D"});
    const Tile hidden = f.call("norm", residual_layernorm(inside(n)), joined({out, x}, {w.norm}))[0];  // (M, D)
    return f.output("y", f.call("ffn", feed_forward(n), joined({hidden}, {w.up, w.down, w.norm_out}))[0]).build();
}

Algorithm encoder(const Numerics &n, const Options &o) {
    Builder f("encoder", n);
    const EncoderDims d(f, o.at("heads"));
    const Dim L = f.dim("L");
    std::vector<Tile> arguments = {f.input("x", {d.M, d.D}), f.input("keep", {d.B, d.T}, DType::boolean)};
    const LayerInputs w(f, d, {L});
    arguments = joined(arguments, {w.qkv, w.out, w.norm, w.up, w.down, w.norm_out});
    return f.output("y", f.repeat("layers", encoder_layer(inside(n), o), {"L", {{"x", "y"}}}, arguments)[0]).build();
}

}  // namespace tessera::library

// The recognition network of PP-OCRv4 (Li et al. 2022, "PP-OCRv3"; its backbone is PP-LCNetV3) as one program of calls. A picture is
// (H, W, C), rows outermost. Weights are inputs; export.py names them alike. Layers of one shape are one callee, emitted once.
#include "generators/generator.h"
#include "algorithms/build/builder.h"
#include "algorithms/build/convolution.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

using namespace tessera;

namespace {

// The callees.

Tile hard_sigmoid(const Tile &x, double slope) { return min(max(x * slope + 0.5, 0.0), 1.0); }
// x clip(x + 3, 0, 6) / 6 (Howard et al. 2019), then scaled and shifted.
Tile activated(const Tile &x, const Tile &scale, const Tile &shift) { return fma(x * hard_sigmoid(x, 1.0 / 6), scale, shift); }

struct Picture {
    Picture(const std::string &name, const Numerics &n) : f(name, n) {}
    Builder f;
    Dim H = f.dim("H"), W = f.dim("W"), C = f.dim("C");
    Tile x = f.input("x", {H, W, C});
};

struct Strides {
    int64_t down = 1, across = 1;
};

// A window of taps x taps, padded on all sides by half of them. Its positions are those of H and W where it steps by 1, else P and Q.
Tile seen(Picture &p, const Dim &R, const Dim &S, int64_t taps, const Strides &strides) {
    const Window rows{strides.down, taps / 2}, columns{strides.across, taps / 2};
    const Dim HP = padded_dim("HP", p.H, rows), WP = padded_dim("WP", p.W, columns);
    const Tile padded = pad(p.x, {p.H, p.W}, {HP, WP}, rows).named("padded");
    const bool moves = strides.down > 1 || strides.across > 1;
    auto positions = [&](const std::string &name, const Dim &in, int64_t stride) {
        return moves ? derived_dim(name, (extent(in.name) + (stride - 1)) / Expr(stride)) : in;
    };
    return windows(windows(padded, HP, positions("P", p.H, strides.down), R, rows), WP, positions("Q", p.W, strides.across), S, columns);
}

Algorithm stem(const Numerics &n) {
    Picture p("stem", n);
    const Dim R = p.f.dim("R", 3), S = p.f.dim("S", 3), O = p.f.dim("O");
    const Tile w = p.f.input("w", {R, S, p.C, O}), b = p.f.input("b", {O});
    const Tile acc = dot(seen(p, R, S, 3, {2, 2}), w, {R, S, p.C}).named("acc");  // (P, Q, O)
    return p.f.output("y", acc + b).build();
}

Algorithm depthwise(const Numerics &n, int64_t taps, const Strides &strides) {
    Picture p(strides.down > 1 || strides.across > 1 ? "depthwise_strided" : "depthwise", n);
    const Dim R = p.f.dim("R", taps), S = p.f.dim("S", taps);
    const Tile w = p.f.input("w", {R, S, p.C}), b = p.f.input("b", {p.C});
    const Tile scale = p.f.input("scale", {p.C}), shift = p.f.input("shift", {p.C});
    const Tile acc = dot(seen(p, R, S, taps, strides), w, {R, S}).named("acc");  // (H, W, C) or (P, Q, C)
    return p.f.output("y", activated(acc + b, scale, shift)).build();
}

Algorithm pointwise(const Numerics &n) {
    Picture p("pointwise", n);
    const Dim O = p.f.dim("O");
    const Tile w = p.f.input("w", {p.C, O}), b = p.f.input("b", {O});
    const Tile scale = p.f.input("scale", {O}), shift = p.f.input("shift", {O});
    const Tile acc = dot(p.x, w, {p.C}).named("acc");  // (H, W, O)
    return p.f.output("y", activated(acc + b, scale, shift)).build();
}

// Channels weighted by what their means over the picture say (Hu et al. 2018).
Algorithm squeeze_excite(const Numerics &n) {
    Picture p("squeeze_excite", n);
    const Dim S = p.f.dim("S"), E = p.f.dim(derived_dim("E", extent("C")));
    const Tile w_squeeze = p.f.input("w_squeeze", {p.C, S}), b_squeeze = p.f.input("b_squeeze", {S});
    const Tile w_excite = p.f.input("w_excite", {S, E}), b_excite = p.f.input("b_excite", {E});
    const Tile rows = sum(p.x, p.W).named("rows");     // (H, C)
    const Tile total = sum(rows, p.H).named("total");  // (C)
    const Tile pixels(&p.f, cast(p.x.dtype(), extent("H") * extent("W")), {});
    const Tile mean = (total / pixels).named("mean");
    const Tile squeezed = relu(dot(mean, w_squeeze, {p.C}).named("squeeze") + b_squeeze).named("squeezed");                  // (S)
    const Tile weights = hard_sigmoid(dot(squeezed, w_excite, {S}).named("excite") + b_excite, 0.1666667).named("weights");  // (E)
    return p.f.output("y", p.x * rename(weights, E, p.C)).build();                                                           // (H, W, C)
}

// Means of 3 rows by 2 columns; what is left over at the ends is not looked at.
Algorithm pool(const Numerics &n) {
    Picture p("pool", n);
    const Dim R = p.f.dim("R", 3), S = p.f.dim("S", 2);
    const Window rows{3}, columns{2};
    const Tile tall = windows(p.x, p.H, positions_dim("P", p.H, R, rows), R, rows);
    const Tile taps = windows(tall, p.W, positions_dim("Q", p.W, S, columns), S, columns);
    return p.f.output("y", p.f.fold(sum_monoid(p.x.dtype()), {taps}, {"R", "S"})[0].named("sum") * (1.0 / 6)).build();  // (P, Q, C)
}

// Each of T positions with its neighbours.
Tile convolved(Builder &f, const Tile &x, const Tile &w, const Dim &T, const Dim &R, const Dim &C, const std::string &padded) {
    const Window window{1, 1};
    const Dim TP = padded_dim("TP", T, window);
    return dot(windows(pad(x, {T}, {TP}, window).named(padded), TP, T, R, window), w, {R, C});
}

Algorithm convolution(const Numerics &n) {
    Builder f("convolution", n);
    const Dim T = f.dim("T"), C = f.dim("C"), O = f.dim("O"), R = f.dim("R", 3);
    const Tile x = f.input("x", {T, C}), w = f.input("w", {R, C, O}), b = f.input("b", {O});
    return f.output("y", silu(convolved(f, x, w, T, R, C, "padded").named("acc") + b)).build();  // (T, O)
}

// The same of the channels of x and those of z side by side.
Algorithm convolution_of_both(const Numerics &n) {
    Builder f("convolution_of_both", n);
    const Dim T = f.dim("T"), C = f.dim("C"), O = f.dim("O"), R = f.dim("R", 3);
    const Tile x = f.input("x", {T, C}), z = f.input("z", {T, C});
    const Tile w = f.input("w", {R, C, O}), w_z = f.input("w_z", {R, C, O}), b = f.input("b", {O});
    const Tile acc = convolved(f, x, w, T, R, C, "padded").named("acc");
    const Tile acc_z = convolved(f, z, w_z, T, R, C, "padded_z").named("acc_z");
    return f.output("y", silu(acc + acc_z + b)).build();  // (T, O)
}

Algorithm linear_silu(const Numerics &n) {
    Builder f("linear_silu", n);
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N}), b = f.input("b", {N});
    return f.output("y", silu(dot(x, w).named("acc") + b)).build();  // (M, N)
}

Algorithm linear_residual(const Numerics &n) {
    Builder f("linear_residual", n);
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N}), b = f.input("b", {N}), r = f.input("r", {M, N});
    return f.output("y", dot(x, w).named("acc") + b + r).build();  // (M, N)
}

Algorithm normalized(const Numerics &n, double epsilon) {
    Builder f("normalized", n);
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), gamma = f.input("gamma", {N}), beta = f.input("beta", {N});
    return f.output("y", layernorm(x, gamma, beta, N, epsilon)).build();
}

// A layer of a transformer that normalizes first: x + attention(norm(x)), and of that y + feed_forward(norm(y)).
Algorithm mixing_layer(const Numerics &n) {
    Builder f("mixing_layer", n);
    const Dim T = f.dim("T"), D = f.dim("D", 120), A = f.dim("A", 3 * 120), F = f.dim("F", 240), H = f.dim("H", 8), E = f.dim("E", 15);
    const Dim D2 = f.dim("D2", 120), S = f.dim(derived_dim("S", extent("T"))), V = f.dim("V", 15);
    const Tile x = f.input("x", {T, D}), gamma = f.input("gamma", {D}), beta = f.input("beta", {D});
    const Tile w_qkv = f.input("w_qkv", {D, A}), b_qkv = f.input("b_qkv", {A});
    const Tile w_out = f.input("w_out", {D2, D}), b_out = f.input("b_out", {D});
    const Tile gamma2 = f.input("gamma2", {D}), beta2 = f.input("beta2", {D});
    const Tile w_up = f.input("w_up", {D, F}), b_up = f.input("b_up", {F}), w_down = f.input("w_down", {F, D}),
               b_down = f.input("b_down", {D});
    const Tile normal = f.call("norm", normalized(n, 1e-5), {x, gamma, beta})[0];
    const Tile qkv = f.call("qkv", library::linear(n), {normal, w_qkv, b_qkv})[0];  // (T, A)
    auto part = [&](int64_t number, const Dim &tokens, const Dim &width) {
        const Expr column = variable("H") * 15 + variable(width.name) + number * 120;
        return qkv.at({{"T", variable(tokens.name)}, {"A", column}}, {"H", tokens.name, width.name});
    };
    const Tile attended = f.call("attention", library::attention(n), {part(0, S, E), part(1, T, E), part(2, T, V)})[0];  // (H, S, V)
    const Expr c = variable("D2");
    const Tile merged = attended.at({{"H", c / 15}, {"S", variable("T")}, {"V", c % 15}}, {"T", "D2"}).named("merged");
    const Tile hidden = f.call("out", linear_residual(n), {merged, w_out, b_out, x})[0];  // (T, D)
    const Tile normal2 = f.call("norm2", normalized(n, 1e-5), {hidden, gamma2, beta2})[0];
    const Tile up = f.call("up", linear_silu(n), {normal2, w_up, b_up})[0];  // (T, F)
    return f.output("y", f.call("down", linear_residual(n), {up, w_down, b_down, hidden})[0]).build();
}

// A depthwise convolution and the pointwise one behind it, of as many channels as before.
Algorithm separable(const Numerics &n) {
    Picture p("separable", n);
    const Dim R = p.f.dim("R", 5), S = p.f.dim("S", 5), K = p.f.dim(derived_dim("K", extent("C")));
    std::vector<Tile> down = {p.x, p.f.input("dw_w", {R, S, p.C})}, across = {Tile(), p.f.input("pw_w", {p.C, K})};
    for (const char *name : {"dw_b", "dw_scale", "dw_shift"}) down.push_back(p.f.input(name, {p.C}));
    for (const char *name : {"pw_b", "pw_scale", "pw_shift"}) across.push_back(p.f.input(name, {K}));
    across[0] = p.f.call("dw", depthwise(n, 5, {}), down)[0];  // (H, W, C)
    return p.f.output("y", p.f.call("pw", pointwise(n), across)[0]).build();
}

// The program.

class Network {
public:
    explicit Network(const Numerics &n) : n_(n), f_("ocr", n) {}
    Algorithm build();

private:
    const Numerics &n_;
    Builder f_;

    Dim columns(const std::string &name, int64_t channels) { return f_.dim(name + "_O", channels); }
    Dim channels_of(const Tile &x) { return f_.dim_named(x.dims().back()); }
    Tile input(const std::string &name, const std::vector<Dim> &dims) { return f_.input(name, dims); }
    std::vector<Tile> activation(const std::string &name, const Dim &channels) {
        return {input(name + "_b", {channels}), input(name + "_scale", {channels}), input(name + "_shift", {channels})};
    }
    Tile called(const std::string &name, const Algorithm &callee, std::vector<Tile> arguments, const std::vector<Tile> &more) {
        arguments.insert(arguments.end(), more.begin(), more.end());
        return f_.call(name, callee, arguments)[0];
    }
    Tile block(const std::string &name, Tile x, int64_t taps, int64_t channels, Strides strides, int64_t squeeze = 0);
    Tile repeated(const std::string &name, const Tile &x, int64_t rounds);
    Tile mixed(const std::string &name, const Tile &x, int64_t rounds);
    Tile product(const std::string &name, const Algorithm &callee, const Tile &x, int64_t outputs);
};

// squeeze: channels of the squeeze between the two convolutions, 0 for none.
Tile Network::block(const std::string &name, Tile x, int64_t taps, int64_t channels, Strides strides, int64_t squeeze) {
    const Dim C = channels_of(x), O = columns(name, channels);
    const Dim R = f_.dim("R" + std::to_string(taps), taps), S = f_.dim("S" + std::to_string(taps), taps);
    const Tile w_dw = input(name + "_dw_w", {R, S, C});
    x = called(name + "_dw", depthwise(n_, taps, strides), {x, w_dw}, activation(name + "_dw", C));
    if (squeeze) {
        const Dim Z = f_.dim(name + "_Z", squeeze), E = f_.dim(name + "_E", C.value);
        x = f_.call(name + "_se", squeeze_excite(n_),
                    {x, input(name + "_squeeze_w", {C, Z}), input(name + "_squeeze_b", {Z}), input(name + "_excite_w", {Z, E}),
                     input(name + "_excite_b", {E})})[0];
    }
    const Tile w_pw = input(name + "_pw_w", {C, O});
    return called(name + "_pw", pointwise(n_), {x, w_pw}, activation(name + "_pw", O));
}

Tile Network::repeated(const std::string &name, const Tile &x, int64_t rounds) {
    const Dim L = f_.dim(name + "_L", rounds), C = channels_of(x), K = columns(name, C.value), R = f_.dim("R5", 5), S = f_.dim("S5", 5);
    std::vector<Tile> arguments = {x, input(name + "_dw_w", {L, R, S, C}), input(name + "_pw_w", {L, C, K})};
    for (const char *part : {"_dw_b", "_dw_scale", "_dw_shift"}) arguments.push_back(input(name + part, {L, C}));
    for (const char *part : {"_pw_b", "_pw_scale", "_pw_shift"}) arguments.push_back(input(name + part, {L, K}));
    return f_.repeat(name, separable(n_), {L.name, {{"x", "y"}}}, arguments)[0];
}

Tile Network::mixed(const std::string &name, const Tile &x, int64_t rounds) {
    const Dim L = f_.dim(name + "_L", rounds), D = channels_of(x), A = f_.dim("A", 360), F = f_.dim("F", 240), D2 = f_.dim("D2", 120);
    const std::vector<std::pair<const char *, std::vector<Dim>>> weights = {
        {"gamma", {D}},  {"beta", {D}},  {"w_qkv", {D, A}}, {"b_qkv", {A}}, {"w_out", {D2, D}}, {"b_out", {D}},
        {"gamma2", {D}}, {"beta2", {D}}, {"w_up", {D, F}},  {"b_up", {F}},  {"w_down", {F, D}}, {"b_down", {D}}};
    std::vector<Tile> arguments = {x};
    for (auto [part, dims] : weights) {
        dims.insert(dims.begin(), L);
        arguments.push_back(input(name + "_" + part, dims));
    }
    return f_.repeat(name, mixing_layer(n_), {L.name, {{"x", "y"}}}, arguments)[0];
}

Tile Network::product(const std::string &name, const Algorithm &callee, const Tile &x, int64_t outputs) {
    const Dim O = columns(name, outputs);
    return f_.call(name, callee, {x, input(name + "_w", {channels_of(x), O}), input(name + "_b", {O})})[0];
}

Algorithm Network::build() {
    Dim W = symbolic_dim("W");
    W.min = 8;
    const Dim H = f_.dim("H", 48), C = f_.dim("C", 3), R = f_.dim("R3", 3), S = f_.dim("S3", 3), O = columns("stem", 16);
    Tile x = input("x", {H, f_.dim(W), C});
    x = f_.call("stem", stem(n_), {x, input("stem_w", {R, S, C, O}), input("stem_b", {O})})[0];  // (24, W/2, 16)
    x = block("b0", x, 3, 32, {});
    x = block("b1", x, 3, 64, {});
    x = block("b2", x, 3, 64, {});
    x = block("b3", x, 3, 128, {2, 1});
    x = block("b4", x, 3, 128, {});
    x = block("b5", x, 3, 240, {1, 2});
    x = repeated("b6", x, 4);  // (12, W/4, 240)
    x = block("b7", x, 5, 480, {2, 1}, 60);
    x = block("b8", x, 5, 480, {}, 120);
    x = block("b9", x, 5, 480, {2, 1});
    x = block("b10", x, 5, 480, {});  // (3, W/4, 480)
    x = f_.call("pool", pool(n_), {x})[0];
    const Dim T = f_.dim(derived_dim("T", (extent("W") + 3) / Expr(8)));
    const Tile pooled = x.at({{x.dims()[0], Expr(0)}, {x.dims()[1], variable("T")}}, {"T", x.dims()[2]});  // (T, 480)
    const Dim K = channels_of(pooled), O60 = f_.dim("neck_O", 60), R1 = f_.dim("R1", 3);
    x = f_.call("neck", convolution(n_), {pooled, input("neck_w", {R1, K, O60}), input("neck_b", {O60})})[0];
    x = product("widen", linear_silu(n_), x, 120);
    x = mixed("mix", x, 2);
    x = f_.call("norm", normalized(n_, 1e-6), {x, input("norm_gamma", {channels_of(x)}), input("norm_beta", {channels_of(x)})})[0];
    x = product("back", linear_silu(n_), x, K.value);
    const Dim O2 = f_.dim("head_O", 60);
    x = f_.call(
        "head", convolution_of_both(n_),
        {pooled, rename(x, channels_of(x), K), input("head_w", {R1, K, O2}), input("head_w_z", {R1, K, O2}), input("head_b", {O2})})[0];
    x = product("last", linear_silu(n_), x, 120);
    x = product("characters", library::linear(n_), x, 6625);
    return f_.output("y", f_.call("probabilities", library::softmax(n_), {x})[0]).build();  // (T, 6625)
}

Algorithm ocr(const Numerics &n) { return Network(n).build(); }

}  // namespace

int main(int argc, char **argv) {
    Registry registry;
    registry.add("ocr", "y[T, K]: how likely each of K characters is at T positions of a picture x[48, W, 3] of a line of text", ocr);
    return generator_main(argc, argv, registry);
}

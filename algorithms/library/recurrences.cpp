#include "algorithms/build/epilogue.h"
#include "algorithms/build/recurrent.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"

namespace tessera::library {

namespace {

enum class Biases : uint8_t { none, input, both };

std::vector<Option> recurrent_options() {
    return {{"gates", "in which order the columns of weights have them", 0, 0, 1, {"onnx", "pytorch"}},
            {"direction", "in which steps go", 0, 0, 1, {"forward", "backward"}},
            {"bias", "b[G], and recurrent_b[G]", 2, 0, 2, {"none", "input", "both"}},
            yes_or_no("transpose_w", "weights are w[G, I] and r[G, K]")};
}

// What all of them take.
struct Network {
    Network(const std::string &name, const Numerics &n, const Options &o, int64_t gates)
        : f(name, n), G(f.dim(derived_dim("G", extent("H") * gates))) {
        const bool is_transposed = o.at("transpose_w") != 0;
        x = f.input("x", {T, N, I});
        w.input = f.input("w", is_transposed ? std::vector<Dim>{G, I} : std::vector<Dim>{I, G});
        w.recurrent = f.input("r", is_transposed ? std::vector<Dim>{G, K} : std::vector<Dim>{K, G});
        const auto biases = static_cast<Biases>(o.at("bias"));
        if (biases != Biases::none) w.bias = f.input("b", {G});
        if (biases == Biases::both) w.recurrent_bias = f.input("recurrent_b", {G});
        h = f.input("h", {N, H}, n.compute);
        options.order = static_cast<GateOrder>(o.at("gates")), options.backward = o.at("direction") != 0;
    }
    Builder f;
    Dim T = f.dim("T"), N = f.dim("N"), I = f.dim("I"), H = f.dim("H"), K = f.dim(derived_dim("K", extent("H"))), G;
    Tile x, h;
    RecurrentWeights w;
    RecurrentOptions options;

    Algorithm finish(const RecurrentStates &made) {
        f.output("y", made.y).output("h_last", made.h, f.numerics().compute);
        if (made.c) f.output("c_last", made.c, f.numerics().compute);
        return f.build();
    }
};

}  // namespace

std::vector<Option> lstm_options() { return recurrent_options(); }
std::vector<Option> rnn_options() {
    std::vector<Option> all = recurrent_options();
    all.erase(all.begin());  // one gate has no order
    all.push_back({"activation", "of the state", 0, 0, 1, {"tanh", "relu"}});
    return all;
}
std::vector<Option> gru_options() {
    std::vector<Option> all = recurrent_options();
    all.push_back({"resets", "whether its product with the weights is reset, or the state before", 0, 0, 1, {"after", "before"}});
    return all;
}

Algorithm lstm(const Numerics &n, const Options &o) {
    Network net("lstm", n, o, 4);
    const Tile c = net.f.input("c", {net.N, net.H}, n.compute);
    return net.finish(tessera::lstm(net.x, net.w, net.h, c, net.T, net.options));
}

Algorithm gru(const Numerics &n, const Options &o) {
    Network net("gru", n, o, 3);
    net.options.resets_after = o.at("resets") == 0;
    return net.finish(tessera::gru(net.x, net.w, net.h, net.T, net.options));
}

Algorithm rnn(const Numerics &n, const Options &o) {
    Options all = o;
    all["gates"] = 0;
    Network net("rnn", n, all, 1);
    net.options.activations = {o.at("activation") ? Activation::relu : Activation::tanh};
    return net.finish(tessera::rnn(net.x, net.w, net.h, net.T, net.options));
}

std::vector<Option> linear_recurrence_options() { return {yes_or_no("shared", "one matrix a[H, K] serves all steps and sequences")}; }

Algorithm linear_recurrence(const Numerics &n, const Options &o) {
    Builder f("linear_recurrence", n);
    const Dim T = f.dim("T"), N = f.dim("N"), H = f.dim("H"), K = f.dim(derived_dim("K", extent("H")));
    const Tile a = f.input("a", o.at("shared") ? std::vector<Dim>{H, K} : std::vector<Dim>{T, N, H, K});
    const Tile b = f.input("b", {T, N, H}), h = f.input("h", {N, H}, n.compute);
    const RecurrentStates made = tessera::linear_recurrence(a, b, h, T);
    return f.output("y", made.y).output("h_last", made.h, n.compute).build();
}

std::vector<Option> causal_conv1d_options() {
    std::vector<Option> all = {{"dilation", "step between taps", 1, 1, 64},
                               yes_or_no("depthwise", "each channel is convolved by itself: w[R, C], y[N, L, C]")};
    for (const Option &o : epilogue_options()) all.push_back(o);
    return all;
}

Algorithm causal_conv1d(const Numerics &n, const Options &o) {
    Builder f("causal_conv1d", n);
    const bool is_depthwise = o.at("depthwise") != 0;
    Dim R = symbolic_dim("R");
    R.min = 1;
    R = f.dim(R);
    const Dim N = f.dim("N"), L = f.dim("L"), C = f.dim("C"), J = f.dim(causal_history("J", R, o.at("dilation")));
    const Tile x = f.input("x", {N, L, C});
    const Dim O = is_depthwise ? C : f.dim("O");
    const Tile w = f.input("w", is_depthwise ? std::vector<Dim>{R, C} : std::vector<Dim>{R, C, O});
    const Tile history = f.input("history", {N, J, C});
    const CausalConvolution made =
        tessera::causal_conv1d(x, w, history, L, R, is_depthwise ? std::vector<Dim>{} : std::vector<Dim>{C}, o.at("dilation"));
    f.output("y", with_epilogue(made.y.named("acc"), O, o));  // (N, L, O)
    return f.output("history_last", made.history, n.storage).build();
}

}  // namespace tessera::library

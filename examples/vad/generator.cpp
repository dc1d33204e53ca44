// silero-vad for 16 kHz (Silero Team 2024) as one program: of T pieces of 512 samples each, how likely somebody speaks in it. What it has
// heard is in three states, so pieces may come one by one or all at once, with the same bits. Weights lie as in its ONNX file.
#include "generators/generator.h"
#include "algorithms/build/builder.h"
#include "algorithms/build/convolution.h"
#include "algorithms/build/recurrent.h"
#include "algorithms/build/tile_functions.h"

using namespace tessera;

namespace {

constexpr int64_t samples_each = 512, samples_before = 64, hop = 128, window = 256;

class Network {
public:
    explicit Network(const Numerics &n) : f_("vad", n) {}
    Algorithm build();

private:
    Builder f_;
    Dim T_;

    Tile input(const std::string &name, const std::vector<Dim> &dims) { return f_.input(name, dims); }
    Tile spectrum();
    Tile convolved(const std::string &name, const Tile &x, const Dim &P, const Dim &C, int64_t outputs, int64_t stride);
};

// Magnitudes (T, P, F) of 4 frames of 256 samples, 128 apart: of the 64 samples before the piece, the piece, and 64 mirrored at its end.
Tile Network::spectrum() {
    const Dim X = f_.dim("X", samples_each), B = f_.dim("B", samples_before), Z = f_.dim("Z", window + 2), one = f_.dim("one", 1);
    const Dim S = f_.dim("S", window), P = f_.dim("P", 4), F = f_.dim("F", window / 2 + 1),
              J = f_.dim("J", samples_each + 2 * samples_before);
    const Tile x = input("samples", {T_, X}), context = f_.state("context", {B}), basis = input("stft_conv_weight", {Z, one, S});
    const Expr j = variable("J"), last = Expr(samples_each + samples_before - 1);
    const auto read = [&](const Expr &piece, const Expr &sample, const Expr &where) {
        return read_where(x.at({{"T", piece}, {"X", sample}}, {"T", "J"}).value(), where);
    };
    const Expr is_early = j < Expr(samples_before), is_late = last < j, follows = Expr(1) <= variable("T");
    const Expr before = select(follows, read(variable("T") - 1, j + (samples_each - samples_before), is_early && follows),
                               read_where(context.at({{"B", j}}, {"J"}).value(), is_early));
    const Expr here = read(variable("T"), j - samples_before, !is_early && !is_late);
    const Expr mirrored = read(variable("T"), last * 2 - j - samples_before, is_late);
    const Tile heard = Tile(&f_, select(is_early, before, select(is_late, mirrored, here)), {"T", "J"}).named("heard");
    f_.update("remember", context, {f_.index(B)},
              x.at({{"T", extent("T") - 1}, {"X", variable("B") + (samples_each - samples_before)}}, {"B"}));
    const Tile frames = windows(heard, J, P, S, {.stride = hop});  // (T, P, S)
    const Tile waves = dot(frames, basis.at({{"one", Expr(0)}}, {"Z", "S"}), {S}).named("waves");
    const auto part = [&](int64_t first) { return waves.at({{"Z", variable("F") + first}}, {"T", "P", "F"}); };
    const Tile real = part(0), imaginary = part(window / 2 + 1);
    return sqrt(real * real + imaginary * imaginary).named("magnitudes");
}

// relu of windows of 3 positions times weights, stride apart: (T, positions, outputs) of x (T, P, C).
Tile Network::convolved(const std::string &name, const Tile &x, const Dim &P, const Dim &C, int64_t outputs, int64_t stride) {
    const Window three{stride, 1};
    const Dim O = f_.dim(name + "_O", outputs), R = f_.dim("R", 3);
    const Dim padded = f_.dim(name + "_padded", P.value + 2), positions = f_.dim(name + "_P", (P.value - 1) / stride + 1);
    const Tile w = input(name + "_weight", {O, C, R}), b = input(name + "_bias", {O});
    const Tile seen = windows(pad(x, {P}, {padded}, three).named(name + "_seen"), padded, positions, R, three);
    return relu(dot(seen, w, {R, C}).named(name + "_acc") + b).named(name);
}

Algorithm Network::build() {
    Dim pieces = symbolic_dim("T");
    pieces.min = 1;
    T_ = f_.dim(pieces);
    Tile x = spectrum();
    Dim P = f_.dim_named("P"), C = f_.dim_named("F");
    const struct {
        const char *name;
        int64_t outputs, stride;
    } layers[] = {{"conv1", 128, 1}, {"conv2", 64, 2}, {"conv3", 64, 2}, {"conv4", 128, 1}};
    for (const auto &layer : layers) {
        x = convolved(layer.name, x, P, C, layer.outputs, layer.stride);
        P = f_.dim_named(x.dims()[1]), C = f_.dim_named(x.dims()[2]);
    }
    const Tile features = x.at({{P.name, Expr(0)}}, {"T", C.name});  // one position is left
    const Dim H = f_.dim("H", 128), K = f_.dim("K", 128), G = f_.dim("G", 4 * 128), one = f_.dim_named("one");
    const Tile h = f_.state("h", {H}), c = f_.state("c", {H});
    const RecurrentWeights w{input("lstm_cell_weight_ih", {G, C}), input("lstm_cell_weight_hh", {G, K}), input("lstm_cell_bias_ih", {G}),
                             input("lstm_cell_bias_hh", {G})};
    const RecurrentStates made = lstm(features, w, h, c, T_, {.order = GateOrder::pytorch});
    f_.update("keep_h", h, {f_.index(H)}, made.h);
    f_.update("keep_c", c, {f_.index(H)}, made.c);
    const Dim two = f_.dim("two", 1);
    const Tile w_last = input("final_conv_weight", {one, H, two}).at({{"one", Expr(0)}, {"two", Expr(0)}}, {"H"});
    const Tile score = dot(relu(made.y).named("heeded"), w_last, {H}).named("score");  // (T)
    return f_.output("probability", sigmoid(score + input("final_conv_bias", {one}).at({{"one", Expr(0)}}, {}))).build();
}

Algorithm vad(const Numerics &n) { return Network(n).build(); }

}  // namespace

int main(int argc, char **argv) {
    Registry registry;
    registry.add("vad", "probability[T]: how likely somebody speaks in each of T pieces samples[T, 512] at 16 kHz", vad);
    return generator_main(argc, argv, registry);
}

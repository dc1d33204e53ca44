// LSTM, GRU and RNN, by the functions of build/recurrent.h.
#include <algorithm>

#include "algorithms/build/recurrent.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

// One of ONNX's, and what it does in each direction.
struct Directions {
    std::vector<RecurrentOptions> options;
    int64_t gates = 1;
};

Activation activation_of(Context &c, const std::string &name) {
    if (name == "Sigmoid") return Activation::sigmoid;
    if (name == "Tanh") return Activation::tanh;
    if (name == "Relu") return Activation::relu;
    c.refuse("its activation is " + name + "; Tessera has Sigmoid, Tanh and Relu here.", "Export it with one of them.");
}

Directions directions_of(Context &c) {
    Directions all;
    RecurrentOptions o;
    all.gates = c.node.op == "LSTM" ? 4 : c.node.op == "GRU" ? 3 : 1;
    o.clip = c.node.real("clip", 0);
    o.resets_after = c.node.integer("linear_before_reset", 0) != 0;
    o.couples = c.node.integer("input_forget", 0) != 0;
    if (c.node.op == "GRU" && c.node.find("clip") && o.resets_after) c.refuse("clip with linear_before_reset.", "Export it without clip.");
    const std::string direction = c.node.text("direction", "forward");
    const size_t count = direction == "bidirectional" ? 2 : 1;
    std::vector<Activation> functions;
    if (const Attribute *a = c.node.find("activations"))
        for (const std::string &name : a->texts) functions.push_back(activation_of(c, name));
    const size_t of_one = c.node.op == "LSTM" ? 3 : c.node.op == "GRU" ? 2 : 1;
    for (size_t d = 0; d < count; d++) {
        const bool has_own = functions.size() >= (d + 1) * of_one;  // else those of the first direction serve both
        const auto first = functions.begin() + static_cast<int64_t>(has_own ? d * of_one : 0);
        o.activations.assign(first, std::min(functions.end(), first + static_cast<int64_t>(of_one)));
        o.backward = direction == "reverse" || d == 1;
        all.options.push_back(o);
    }
    return all;
}

std::vector<Value> recurrent(Context &c) {
    const Value &x = c.in(0), &w = c.in(1), &r = c.in(2);
    const Directions ways = directions_of(c);
    const int64_t hidden = c.fixed(r.axes[2], "its hidden size");
    const bool is_lstm = c.node.op == "LSTM";
    const bool batch_first = c.node.integer("layout", 0) != 0;
    if (c.has(4)) {
        const std::optional<int64_t> steps = c.space.number(x.axes[batch_first ? 1 : 0].extent);
        bool whole = c.in(4).is_constant() && steps;
        if (whole)
            for (double v : c.in(4).constant->values()) whole &= static_cast<int64_t>(v) == *steps;
        if (!whole) c.refuse("it has lengths of sequences.", "Run each length by itself.");
    }
    const size_t t_axis = batch_first ? 1 : 0, n_axis = batch_first ? 0 : 1;
    std::vector<Axis> taken;
    auto add = [&](const Expr &extent) {
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    const Axis T = add(x.axes[t_axis].extent), N = add(x.axes[n_axis].extent), G = add(Expr(ways.gates * hidden)),
               I = add(x.axes[2].extent);
    const Axis H = add(Expr(hidden)), K = add(Expr(hidden));
    std::vector<Tile> all, last_h, last_c;
    for (size_t d = 0; d < ways.options.size(); d++) {
        const Builder::Scope scope = c.f.scope(ways.options[d].backward ? "backward" : "forward");
        const Expr number(static_cast<int64_t>(d));
        std::vector<Expr> at_x(3);
        at_x[t_axis] = at(T), at_x[n_axis] = at(N), at_x[2] = at(I);
        auto ordered = [&](const Tile &tile, const std::vector<Axis> &axes) {
            std::vector<std::string> dims;
            for (const Axis &a : axes) dims.push_back(a.dim);
            return Tile(&c.f, c.space.resolved(tile.value()), dims);
        };
        c.tile_in_order(w, {0, 2, 1}), c.tile_in_order(r, {0, 2, 1});
        const Tile sequence = ordered(c.read(x, at_x, {T, N, I}), {T, N, I});
        RecurrentWeights weights;
        weights.input = ordered(c.read(w, {number, at(G), at(I)}, {I, G}), {I, G});
        weights.recurrent = ordered(c.read(r, {number, at(G), at(K)}, {K, G}), {K, G});
        if (c.has(3)) {
            weights.bias = ordered(c.read(c.in(3), {number, at(G)}, {G}), {G});
            weights.recurrent_bias = ordered(c.read(c.in(3), {number, at(G) + G.extent}, {G}), {G});
        }
        auto initial = [&](size_t input) {
            const Tile zero(&c.f, constant(DType::f32, 0), {});
            const Tile value =
                c.has(input)
                    ? c.read(c.in(input), batch_first ? std::vector<Expr>{at(N), number, at(H)} : std::vector<Expr>{number, at(N), at(H)},
                             {N, H})
                    : zero;
            return ordered(value, {N, H});
        };
        if (is_lstm && c.has(7)) {
            const Axis P = c.new_axis(Expr(3 * hidden), taken);
            weights.peepholes = ordered(c.read(c.in(7), {number, at(P)}, {P}), {P});
        }
        const Tile h0 = initial(5);
        const Dim steps = c.dim(T);
        const RecurrentStates made = is_lstm              ? lstm(sequence, weights, h0, initial(6), steps, ways.options[d])
                                     : c.node.op == "GRU" ? gru(sequence, weights, h0, steps, ways.options[d])
                                                          : rnn(sequence, weights, h0, steps, ways.options[d]);
        all.push_back(ordered(made.y, {T, N, H})), last_h.push_back(ordered(made.h, {N, H}));
        if (is_lstm) last_c.push_back(ordered(made.c, {N, H}));
    }
    // Axes: (T, directions, N, H), or with the batch in front (N, T, directions, H).
    std::vector<Axis> others = taken;
    const Axis D = ways.options.size() == 2 ? c.new_axis(Expr(2), others) : Axis{Expr(1), ""};
    auto joined = [&](const std::vector<Tile> &tiles) {
        if (tiles.size() == 1) return tiles[0];
        std::vector<std::string> dims = tiles[0].dims();
        dims.insert(dims.end() - 1, D.dim);
        return Tile(&c.f, select(at(D) == Expr(0), tiles[0].value(), tiles[1].value()), dims);
    };
    std::vector<Value> results;
    results.push_back(c.result(joined(all), batch_first ? std::vector<Axis>{N, T, D, H} : std::vector<Axis>{T, D, N, H}, x.dtype));
    const std::vector<Axis> of_last = batch_first ? std::vector<Axis>{N, D, H} : std::vector<Axis>{D, N, H};
    results.push_back(c.result(joined(last_h), of_last, x.dtype));
    if (is_lstm) results.push_back(c.result(joined(last_c), of_last, x.dtype));
    return results;
}

}  // namespace

std::vector<Operator> recurrent_operators() { return {{"LSTM", recurrent}, {"GRU", recurrent}, {"RNN", recurrent}}; }

}  // namespace tessera::onnx

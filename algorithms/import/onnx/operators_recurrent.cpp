// LSTM, GRU and RNN: one product for all steps of the sequence, then a step that repeats (Builder::repeat).
#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

struct Cell {
    std::string op;  // LSTM, GRU, RNN
    std::vector<std::string> functions;
    int64_t hidden = 0;
    bool peepholes = false, resets_after = false, couples = false;
    double clip = 0;
};

Tile activated(Context &c, const std::string &name, const Tile &x, double clip) {
    const Tile in = clip > 0 ? min(max(x, -clip), clip) : x;
    if (name == "Sigmoid") return sigmoid(in);
    if (name == "Tanh") return tanh(in);
    if (name == "Relu") return relu(in);
    c.refuse("its activation is " + name + "; Tessera has Sigmoid, Tanh and Relu here.", "Export it with one of them.");
}

// A step: h (and c) of the gates that the input gives, xw (N, gates H), and the state before.
Algorithm step_of(Context &c, const Cell &cell, int64_t gates, bool has_bias) {
    Builder f(cell.op == "LSTM" ? "lstm_step" : cell.op == "GRU" ? "gru_step" : "rnn_step", Numerics{});
    const int64_t H = cell.hidden;
    const Dim N = f.dim("N"), G = f.dim("G", gates * H), K = f.dim("K", H), h_dim = f.dim("H", H);
    const Tile xw = f.input("xw", {N, G}), h = f.input("h", {N, h_dim});
    std::optional<Tile> state;
    if (cell.op == "LSTM") state = f.input("c", {N, h_dim});
    const Tile r = f.input("r", {K, G});
    std::optional<Tile> bias, peep;
    if (has_bias) bias = f.input("rb", {G});
    if (cell.peepholes) peep = f.input("p", {f.dim("P", 3 * H)});
    const Tile rows = rename(h, h_dim, K);
    const Tile hr = dot(rows, r, {K}).named("recurrent");  // (N, G)
    auto part = [&](const Tile &t, int64_t number) {
        std::vector<std::string> dims;
        std::map<std::string, Expr> index;
        for (const std::string &d : t.dims()) {
            dims.push_back(d == "G" || d == "P" ? "H" : d);
            if (d == "G" || d == "P") index[d] = variable("H") + Expr(number * H);
        }
        return t.at(index, dims);
    };
    auto recurrent = [&](int64_t number) { return has_bias ? part(hr, number) + part(*bias, number) : part(hr, number); };
    auto gate = [&](int64_t number) { return part(xw, number) + recurrent(number); };
    auto apply = [&](size_t which, const Tile &x) { return activated(c, cell.functions.at(which), x, cell.clip); };
    if (cell.op == "RNN") return f.output("h_next", apply(0, gate(0))).build();
    if (cell.op == "GRU") {
        const Tile z = apply(0, gate(0)).named("update");
        const Tile reset = apply(0, gate(1)).named("reset");
        Tile candidate;
        if (cell.resets_after) {
            candidate = part(xw, 2) + reset * recurrent(2);
        } else {
            const Tile kept = rename((reset * h).named("kept"), h_dim, K);
            const Tile rh = r.at({{"G", variable("H") + Expr(2 * H)}}, {"K", "H"});
            const Tile again = dot(kept, rh, {K}).named("again");
            candidate = part(xw, 2) + (has_bias ? again + part(*bias, 2) : again);
        }
        return f.output("h_next", (1.0 - z) * apply(1, candidate) + z * h).build();
    }
    // ONNX's order of gates: input, output, forget, cell.
    auto peeped = [&](int64_t number, int64_t of_gate, const Tile &with) {
        return cell.peepholes ? gate(of_gate) + part(*peep, number) * with : gate(of_gate);
    };
    const Tile i = apply(0, peeped(0, 0, *state)).named("input");
    const Tile forget = cell.couples ? 1.0 - i : apply(0, peeped(2, 2, *state));
    const Tile next = (forget * *state + i * apply(1, gate(3))).named("c_next_value");
    const Tile o = apply(0, peeped(1, 1, next));
    // The cell is not clipped on its way out.
    Cell plain = cell;
    const Tile h_next = o * activated(c, plain.functions.at(2), next, 0);
    f.output("h_next", h_next);
    f.output("c_next", next);
    return f.build();
}

std::vector<Value> recurrent(Context &c) {
    const Value &x = c.in(0), &w = c.in(1), &r = c.in(2);
    Cell cell;
    cell.op = c.node.op;
    const int64_t gates = cell.op == "LSTM" ? 4 : cell.op == "GRU" ? 3 : 1;
    cell.hidden = c.fixed(r.axes[2], "its hidden size");
    cell.clip = c.node.real("clip", 0);
    cell.resets_after = c.node.integer("linear_before_reset", 0) != 0;
    cell.couples = c.node.integer("input_forget", 0) != 0;
    cell.peepholes = cell.op == "LSTM" && c.has(7);
    if (cell.op == "GRU" && c.node.find("clip") && cell.resets_after) c.refuse("clip with linear_before_reset.", "Export it without clip.");
    const std::string direction = c.node.text("direction", "forward");
    const size_t directions = direction == "bidirectional" ? 2 : 1;
    const bool batch_first = c.node.integer("layout", 0) != 0;
    if (c.has(4)) {
        const std::optional<int64_t> steps = c.space.number(x.axes[batch_first ? 1 : 0].extent);
        bool whole = c.in(4).is_constant() && steps;
        if (whole)
            for (double v : c.in(4).constant->values()) whole &= static_cast<int64_t>(v) == *steps;
        if (!whole) c.refuse("it has lengths of sequences.", "Run each length by itself.");
    }
    std::vector<std::string> functions = cell.op == "LSTM"  ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                         : cell.op == "GRU" ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                            : std::vector<std::string>{"Tanh"};
    const size_t each = functions.size();
    if (const Attribute *a = c.node.find("activations")) {
        functions = a->texts;
        if (functions.size() == each && directions == 2) functions.insert(functions.end(), a->texts.begin(), a->texts.end());
    } else if (directions == 2) {
        const std::vector<std::string> again = functions;
        functions.insert(functions.end(), again.begin(), again.end());
    }
    const size_t t_axis = batch_first ? 1 : 0, n_axis = batch_first ? 0 : 1;
    std::vector<Axis> taken;
    auto add = [&](const Expr &extent) {
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    const Axis T = add(x.axes[t_axis].extent), N = add(x.axes[n_axis].extent), G = add(Expr(gates * cell.hidden)),
               I = add(x.axes[2].extent);
    const Axis H = add(Expr(cell.hidden)), K = add(Expr(cell.hidden));
    std::vector<Tile> all, last_h, last_c;
    for (size_t d = 0; d < directions; d++) {
        cell.functions.assign(functions.begin() + static_cast<int64_t>(d * each), functions.begin() + static_cast<int64_t>((d + 1) * each));
        const bool backward = direction == "reverse" || d == 1;
        const Builder::Scope scope = c.f.scope(backward ? "backward" : "forward");
        const Expr number(static_cast<int64_t>(d));
        const Expr t = backward ? T.extent - 1 - at(T) : at(T);
        std::vector<Expr> at_x(3);
        at_x[t_axis] = t, at_x[n_axis] = at(N), at_x[2] = at(I);
        auto ordered = [&](const Tile &tile, const std::vector<Axis> &axes) {
            std::vector<std::string> dims;
            for (const Axis &a : axes) dims.push_back(a.dim);
            return Tile(&c.f, c.space.resolved(tile.value()), dims);
        };
        c.tile_in_order(w, {0, 2, 1}), c.tile_in_order(r, {0, 2, 1});
        const Tile sequence = ordered(c.read(x, at_x, {T, N, I}), {T, N, I});
        const Tile weights = ordered(c.read(w, {number, at(G), at(I)}, {I, G}), {I, G});
        Tile xw = dot(sequence, weights, {c.dim(I)}).named("gates");
        const bool has_bias = c.has(3);
        std::vector<Tile> arguments;
        std::optional<Tile> rb;
        if (has_bias) {
            xw = Tile(&c.f, (xw + ordered(c.read(c.in(3), {number, at(G)}, {G}), {G})).value(), {T.dim, N.dim, G.dim}).named("with_bias");
            rb = ordered(c.read(c.in(3), {number, at(G) + G.extent}, {G}), {G}).named("bias");
        }
        auto initial = [&](size_t input, const char *name) {
            const Tile zero(&c.f, constant(DType::f32, 0), {});
            const Tile value =
                c.has(input)
                    ? c.read(c.in(input), batch_first ? std::vector<Expr>{at(N), number, at(H)} : std::vector<Expr>{number, at(N), at(H)},
                             {N, H})
                    : zero;
            return ordered(value, {N, H}).named(name);
        };
        arguments = {xw, initial(5, "h0")};
        if (cell.op == "LSTM") arguments.push_back(initial(6, "c0"));
        arguments.push_back(ordered(c.read(r, {number, at(G), at(K)}, {K, G}), {K, G}).named("r"));
        if (has_bias) arguments.push_back(*rb);
        if (cell.peepholes) {
            const Axis P = c.new_axis(Expr(3 * cell.hidden), taken);
            arguments.push_back(ordered(c.read(c.in(7), {number, at(P)}, {P}), {P}).named("p"));
        }
        const Algorithm step = step_of(c, cell, gates, has_bias);
        Repeat rounds{.dim = T.dim, .carried = {{"h", "h_next"}}, .stacked = {"h_next"}};
        if (cell.op == "LSTM") rounds.carried["c"] = "c_next";
        const std::vector<Tile> made = c.f.repeat("step", step, rounds, arguments);
        auto named = [&](const Tile &tile, const std::vector<Axis> &axes) {
            std::map<std::string, Expr> index;
            std::vector<std::string> dims;
            for (size_t i = 0; i < axes.size(); i++) index[tile.dims().at(i)] = variable(axes[i].dim), dims.push_back(axes[i].dim);
            return Tile(&c.f, substitute(tile.value(), index), dims);
        };
        const Tile states = named(made[0], {T, N, H});
        last_h.push_back(states.at({{T.dim, T.extent - 1}}, {N.dim, H.dim}));
        if (cell.op == "LSTM") last_c.push_back(named(made[1], {N, H}));
        all.push_back(backward ? states.at({{T.dim, t}}, states.dims()) : states);
    }
    // Axes: (T, directions, N, H), or with the batch in front (N, T, directions, H).
    std::vector<Axis> others = taken;
    const Axis D = directions == 2 ? c.new_axis(Expr(2), others) : Axis{Expr(1), ""};
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
    if (cell.op == "LSTM") results.push_back(c.result(joined(last_c), of_last, x.dtype));
    return results;
}

}  // namespace

std::vector<Operator> recurrent_operators() { return {{"LSTM", recurrent}, {"GRU", recurrent}, {"RNN", recurrent}}; }

}  // namespace tessera::onnx

#include "algorithms/build/recurrent.h"

#include <algorithm>

#include "algorithms/build/argument.h"
#include "algorithms/build/convolution.h"
#include "algorithms/build/tile_functions.h"
#include "support/text/error.h"

namespace tessera {

namespace {

enum class Kind : uint8_t { rnn, gru, lstm };
constexpr const char *kind_names[] = {"rnn", "gru", "lstm"};

int64_t gates_of(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }

// The type of the callee's tensor that Builder::repeat binds to such an argument: that of the tensor that it is a view of in one round,
// else its own.
DType type_as_argument(const Tile &tile, const std::string &rounds = "") {
    std::vector<std::string> dims = tile.dims();
    std::erase(dims, rounds);
    const Expr load = load_in(tile.value(), tile.builder().numerics());
    return view_of(load, dims) ? load.type() : tile.dtype();
}

Tile activated(Activation activation, const Tile &x) {
    switch (activation) {
    case Activation::sigmoid: return sigmoid(x);
    case Activation::tanh: return tanh(x);
    case Activation::relu: return relu(x);
    }
    throw InternalError("an activation of no kind");
}

bool has_dim(const Tile &tile, const std::string &dim) {
    return std::find(tile.dims().begin(), tile.dims().end(), dim) != tile.dims().end();
}

// The other dim of a tile of two dims.
std::string beside(const char *function, const char *what, const Tile &tile, const std::string &dim) {
    if (tile.dims().size() != 2 || !has_dim(tile, dim))
        throw UserError("recurrent.dims", std::string(function) + ": " + what + " are " + tile.describe() + "; expected two dims, '" + dim +
                                              "' and one of gates.");
    return tile.dims()[tile.dims()[0] == dim ? 1 : 0];
}

// The dims of one step of x, in the order of x.
std::vector<std::string> of_one_step(const Tile &x, const Dim &along) {
    std::vector<std::string> dims = x.dims();
    std::erase(dims, along.name);
    return dims;
}

Tile reversed(const Tile &x, const Dim &along) {
    return has_dim(x, along.name) ? x.at({{along.name, extent(along.name) - 1 - variable(along.name)}}, x.dims()) : x;
}

// Declares in a callee a dim that its caller has: a number where it is one there, else an extent that others decide, or none.
Dim declare_like(Builder &callee, const Builder &caller, const std::string &name, const Expr &decided) {
    const Dim known = caller.dim_named(name);
    if (known.kind == DimKind::fixed) return callee.dim(name, known.value);
    return callee.dim(decided.defined() ? derived_dim(name, decided) : symbolic_dim(name));
}

// A step of one of the three, as a callee.
class Step {
public:
    Step(Kind kind, const RecurrentOptions &options, const Numerics &numerics)
        : kind_(kind), o_(options), f_(kind_names[size_t(kind)] + std::string("_step"), numerics) {}

    // Declares what a step takes, each like the tile that it is bound to.
    void declare(const Tile &gates, const std::vector<std::string> &sequences, const std::string &G, const Tile &h, const Tile &c,
                 const RecurrentWeights &w, const std::string &K) {
        G_ = G, K_ = K, H_ = h.dims().back(), type_ = type_as_argument(h);
        const auto like = [&](const std::string &own, const Expr &extent) { declare_like(f_, h.builder(), own, extent); };
        for (const std::string &d : h.dims()) like(d, {});
        like(G_, extent(H_) * gates_of(kind_)), like(K_, extent(H_));
        const auto input = [&](const std::string &name, const Tile &tile, const std::vector<std::string> &dims) {
            std::vector<Dim> declared;
            for (const std::string &d : dims) {
                if (!f_.algorithm().find_dim(d)) like(d, extent(H_) * 3);  // only peepholes have one of their own
                declared.push_back(f_.dim_named(d));
            }
            return f_.input(name, declared, type_as_argument(tile));
        };
        std::vector<std::string> rows = sequences;
        rows.push_back(G_);
        x_ = input("x", gates, rows), h_ = input("h", h, h.dims());
        if (c) c_ = input("c", c, c.dims());
        r_ = input("r", w.recurrent, w.recurrent.dims());
        if (w.bias) bias_ = input("bias", w.bias, {G_});
        if (w.recurrent_bias) recurrent_bias_ = input("recurrent_bias", w.recurrent_bias, {G_});
        if (w.peepholes) peepholes_ = input("peepholes", w.peepholes, w.peepholes.dims());
    }

    Algorithm build() {
        recurrent_ = dot(h_.at({{H_, variable(K_)}}, replaced(h_.dims(), H_, K_)), r_, {f_.dim_named(K_)}).named("recurrent");
        switch (kind_) {
        case Kind::rnn: return finish(apply(0, gate(0), o_.clip), {});
        case Kind::gru: return gated();
        case Kind::lstm: return remembered();
        }
        throw InternalError("a recurrence of no kind");
    }

private:
    Kind kind_;
    const RecurrentOptions &o_;
    Builder f_;
    std::string G_, K_, H_;
    DType type_ = DType::f32;
    Tile x_, h_, c_, r_, bias_, recurrent_bias_, peepholes_, recurrent_;

    static std::vector<std::string> replaced(std::vector<std::string> dims, const std::string &from, const std::string &to) {
        std::replace(dims.begin(), dims.end(), from, to);
        return dims;
    }
    // The gate's part of a tile whose dim `joined` has several.
    Tile part(const Tile &t, const std::string &joined, int64_t number) const {
        return t.at({{joined, variable(H_) + extent(H_) * number}}, replaced(t.dims(), joined, H_));
    }
    // What the gate gets of the input and, by the product with it, of the state, with their biases.
    Tile own(int64_t number) const {
        const Tile given = part(x_, G_, number);
        return bias_ ? given + part(bias_, G_, number) : given;
    }
    Tile recurrent(const Tile &product, int64_t number) const {
        return recurrent_bias_ ? product + part(recurrent_bias_, G_, number) : product;
    }
    Tile gate(int64_t number) const { return own(number) + recurrent(part(recurrent_, G_, number), number); }
    Tile apply(size_t which, const Tile &x, double clip) const {
        static const std::vector<Activation> standard = {Activation::sigmoid, Activation::tanh, Activation::tanh};
        const size_t number = kind_ == Kind::rnn ? 1 : which;
        const Activation own = which < o_.activations.size() ? o_.activations[which] : standard[number];
        return activated(own, clip > 0 ? min(max(x, -clip), clip) : x);
    }
    Algorithm finish(const Tile &h, const Tile &c) {
        const Tile hidden = h.named("hidden");
        f_.output("y", hidden, type_).output("h_next", hidden, type_);
        if (c) f_.output("c_next", c, type_);
        return f_.build();
    }

    Algorithm gated() {
        const int64_t update = o_.order == GateOrder::onnx ? 0 : 1;
        const Tile z = apply(0, gate(update), o_.clip), reset = apply(0, gate(1 - update), o_.clip);
        Tile candidate;
        if (o_.resets_after) {
            candidate = own(2) + reset * recurrent(part(recurrent_, G_, 2), 2);
        } else {
            const Tile kept = (reset * h_).named("kept");
            const Tile again =
                dot(kept.at({{H_, variable(K_)}}, replaced(kept.dims(), H_, K_)), part(r_, G_, 2), {f_.dim_named(K_)}).named("again");
            candidate = own(2) + recurrent(again, 2);
        }
        return finish((1.0 - z) * apply(1, candidate, o_.clip) + z * h_, {});
    }

    Algorithm remembered() {
        struct Gates {
            int64_t input, output, forget, cell;
        };
        const Gates g = o_.order == GateOrder::onnx ? Gates{0, 1, 2, 3} : Gates{0, 3, 1, 2};
        const auto peeped = [&](int64_t number, int64_t peephole, const Tile &cell) {
            return apply(0, peepholes_ ? gate(number) + part(peepholes_, peepholes_.dims()[0], peephole) * cell : gate(number), o_.clip);
        };
        const Tile i = peeped(g.input, 0, c_);
        const Tile forget = o_.couples ? 1.0 - i : peeped(g.forget, 2, c_);
        const Tile cell = (forget * c_ + i * apply(1, gate(g.cell), o_.clip)).named("cell");
        return finish(peeped(g.output, 1, cell) * apply(2, cell, 0), cell);
    }
};

RecurrentStates repeated(Kind kind, const Tile &x, const RecurrentWeights &w, const Tile &h, const Tile &c, const Dim &along,
                         const RecurrentOptions &options) {
    const char *function = kind_names[size_t(kind)];
    Builder &f = x.builder();
    const auto refuse = [&](const std::string &text) { throw UserError("recurrent.dims", std::string(function) + ": " + text); };
    if (!has_dim(x, along.name)) refuse(x.describe() + " has no dim '" + along.name + "' of steps." + did_you_mean(along.name, x.dims()));
    std::vector<std::string> sequences = of_one_step(x, along), inputs;
    for (const std::string &d : sequences)
        if (has_dim(w.input, d)) inputs.push_back(d);
    if (inputs.size() != 1)
        refuse("x is " + x.describe() + " and its weights are " + w.input.describe() +
               "; expected them to share one dim, that of an input.");
    const std::string I = inputs[0], G = beside(function, "weights of the input", w.input, I),
                      K = beside(function, "recurrent weights", w.recurrent, G);
    std::erase(sequences, I);
    for (const Tile &state : {h, c}) {
        if (!static_cast<bool>(state)) continue;
        std::vector<std::string> of_state = state.dims();
        if (!of_state.empty()) of_state.pop_back();
        if (state.dims().empty() || !std::is_permutation(of_state.begin(), of_state.end(), sequences.begin(), sequences.end()) ||
            state.dims() != h.dims())
            refuse("a state is " + state.describe() + "; expected the dims " + (sequences.empty() ? "" : join(sequences) + ", then ") +
                   "that of a state, all states alike.");
    }
    const Tile gates = dot(options.backward ? reversed(x, along) : x, w.input, {f.dim_named(I)}).named("gates");
    Step step(kind, options, f.numerics());
    step.declare(gates, sequences, G, h, c, w, K);
    std::vector<Tile> arguments = {gates, h};
    if (c) arguments.push_back(c);
    arguments.push_back(w.recurrent);
    for (const Tile &more : {w.bias, w.recurrent_bias, w.peepholes})
        if (more) arguments.push_back(more);
    Repeat rounds{.dim = along.name, .carried = {{"h", "h_next"}}, .stacked = {"y"}};
    if (c) rounds.carried["c"] = "c_next";
    const std::vector<Tile> made = f.repeat("step", step.build(), rounds, arguments);
    return {options.backward ? reversed(made[0], along) : made[0], made[1], c ? made[2] : Tile()};
}

}  // namespace

RecurrentStates lstm(const Tile &x, const RecurrentWeights &w, const Tile &h, const Tile &c, const Dim &along,
                     const RecurrentOptions &options, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return repeated(Kind::lstm, x, w, h, c, along, options);
}

RecurrentStates gru(const Tile &x, const RecurrentWeights &w, const Tile &h, const Dim &along, const RecurrentOptions &options,
                    Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return repeated(Kind::gru, x, w, h, {}, along, options);
}

RecurrentStates rnn(const Tile &x, const RecurrentWeights &w, const Tile &h, const Dim &along, const RecurrentOptions &options,
                    Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    return repeated(Kind::rnn, x, w, h, {}, along, options);
}

RecurrentStates linear_recurrence(const Tile &a, const Tile &b, const Tile &h, const Dim &along, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &f = h.builder();
    const auto refuse = [&](const std::string &text) { throw UserError("recurrent.dims", "linear_recurrence: " + text); };
    const std::vector<std::string> of_a = of_one_step(a, along), of_b = of_one_step(b, along);
    std::vector<std::string> columns;
    for (const std::string &d : of_a)
        if (!has_dim(h, d)) columns.push_back(d);
    if (h.dims().empty() || columns.size() != 1 || !has_dim(a, h.dims().back()))
        refuse("a is " + a.describe() + " and the state " + h.describe() +
               "; expected one dim of a, that of its columns, that the state has not.");
    for (const std::string &d : of_b)
        if (!has_dim(h, d)) refuse("b is " + b.describe() + ", and the state " + h.describe() + " has no dim '" + d + "'.");
    if (!has_dim(a, along.name) && !has_dim(b, along.name)) refuse("neither a nor b has the dim '" + along.name + "' of steps.");

    Builder g("linear_recurrence_step", f.numerics());
    const std::string H = h.dims().back(), K = columns[0];
    for (const std::string &d : h.dims()) declare_like(g, f, d, {});
    const Dim k = declare_like(g, f, K, extent(H));
    const auto input = [&](const std::string &name, const Tile &tile, const std::vector<std::string> &dims) {
        std::vector<Dim> declared;
        for (const std::string &d : dims) declared.push_back(g.dim_named(d));
        return g.input(name, declared, type_as_argument(tile, along.name));
    };
    const Tile matrix = input("a", a, of_a), added = input("b", b, of_b), state = input("h", h, h.dims());
    std::vector<std::string> rows = h.dims();
    rows.back() = K;
    const Tile product = dot(matrix, state.at({{H, variable(K)}}, rows), {k}).named("product");
    const Tile hidden = Tile(&g, (product + added).value(), h.dims()).named("hidden");
    const DType type = type_as_argument(h);
    g.output("y", hidden, type).output("h_next", hidden, type);
    const std::vector<Tile> made =
        f.repeat("step", g.build(), {.dim = along.name, .carried = {{"h", "h_next"}}, .stacked = {"y"}}, {a, b, h});
    return {made[0], made[1], {}};
}

Dim causal_history(const std::string &name, const Dim &taps, int64_t dilation) {
    return derived_dim(name, (extent(taps.name) - 1) * Expr(dilation));
}

CausalConvolution causal_conv1d(const Tile &x, const Tile &w, const Tile &history, const Dim &along, const Dim &taps,
                                const std::vector<Dim> &channels, int64_t dilation, Span caller) {
    const SpanScope line = SpanScope::entered(caller);
    Builder &f = x.builder();
    std::string J;
    for (const std::string &d : history.dims())
        if (!has_dim(x, d)) J = d;
    std::vector<std::string> expected = x.dims();
    std::replace(expected.begin(), expected.end(), along.name, J);
    if (!has_dim(x, along.name) || J.empty() ||
        !std::is_permutation(expected.begin(), expected.end(), history.dims().begin(), history.dims().end()))
        throw UserError("recurrent.dims", "causal_conv1d: x is " + x.describe() + " and its history " + history.describe() +
                                              "; expected one dim of x, '" + along.name + "', to be another one in history.");
    // Both behind one another.
    const Dim joined = f.dim(derived_dim(along.name + J, extent(J) + extent(along.name)));
    std::vector<std::string> dims = x.dims();
    std::replace(dims.begin(), dims.end(), along.name, joined.name);
    const Expr at = variable(joined.name), is_before = at < extent(J);
    const Expr before = history.at({{J, at}}, dims).value(), own = x.at({{along.name, at - extent(J)}}, dims).value();
    const Tile both = Tile(&f, select(is_before, read_where(before, is_before), read_where(own, !is_before)), dims).named("joined");
    const Tile seen = windows(both, joined, along, taps, {.dilation = dilation});
    std::vector<Dim> over = {taps};
    over.insert(over.end(), channels.begin(), channels.end());
    // The last of both: those that the next piece sees before it.
    return {dot(seen, w, over), both.at({{joined.name, variable(J) + extent(along.name)}}, history.dims())};
}

}  // namespace tessera

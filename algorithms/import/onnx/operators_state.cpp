// Operators of models that go on where they were: caches, convolutions and linear attention with a state from the call before.
#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

Tile in_these_dims(Context &c, const Tile &tile, const std::vector<Axis> &axes) {
    const Tile made = Context::in_order(tile, axes);
    return Tile(&c.f, c.space.resolved(made.value()), made.dims());
}

// New elements of each batch from its position on, in a cache that is otherwise as it was.
std::vector<Value> tensor_scatter(Context &c) {
    const Value &cache = c.in(0), &update = c.in(1);
    const std::string mode = c.node.text("mode", "linear");
    if (mode != "linear" && mode != "circular") c.refuse("its mode is '" + mode + "'; expected linear or circular.", "Check the exporter.");
    const int64_t axis = c.axis(c.node.integer("axis", -2), cache.rank());
    if (axis == 0 || update.rank() != cache.rank())
        c.refuse("its axis is that of batches, or its inputs have different ranks.", "Check the exporter.");
    std::vector<Axis> axes;
    const Tile before = c.spread(cache, axes);
    std::vector<Expr> index;
    for (size_t i = 0; i < axes.size(); i++) {
        index.push_back(at(axes[i]));
        if (static_cast<int64_t>(i) != axis && !c.space.same(axes[i].extent, update.axes[i].extent))
            c.refuse("axis " + std::to_string(i) + " of its inputs has " + brief(axes[i].extent) + " and " + brief(update.axes[i].extent) +
                         " elements.",
                     Context::equal_extents, "onnx.broadcast");
    }
    const auto along = static_cast<size_t>(axis);
    Expr first(0);
    if (c.has(2)) first = cast(DType::index, c.space.resolved(c.read(c.in(2), {at(axes[0])}, {axes[0]}).value()));
    Expr position = at(axes[along]) - first;
    if (mode == "circular") position = position % axes[along].extent;
    const Expr inside = Expr(0) <= position && position < update.axes[along].extent;
    index[along] = position;
    const Expr after = read_where(c.read(update, index, axes).value(), inside);
    return {c.result(Tile(&c.f, select(inside, after, before.value()), before.dims()), axes, cache.dtype)};
}

// Each channel by its own kernel of k taps, of which the last is at the element itself; k - 1 elements come from the state.
std::vector<Value> causal_convolution(Context &c) {
    const Value &x = c.in(0), &w = c.in(1);
    const std::string activation = c.node.text("activation", "none");
    if (activation != "none" && activation != "silu" && activation != "swish")
        c.refuse("its activation is '" + activation + "'; expected none, silu or swish.", "Check the exporter.");
    if (x.rank() != 3 || w.rank() != 3 || !c.space.same(x.axes[1].extent, w.axes[0].extent) || !w.axes[1].extent.is_constant(1))
        c.refuse("expected an input (N, C, L) and a kernel (C, 1, k).", "Check the exporter.");
    const int64_t k = c.fixed(w.axes[2], "the size of its kernel");
    if (k < 1) c.refuse("its kernel has no elements.", "Check the exporter.");
    Value state;
    if (c.has(3)) {
        state = c.in(3);
    } else {
        const Tile zero(&c.f, constant(computed_as(x.dtype), 0), {});
        state = c.result(zero, {{x.axes[0].extent, ""}, {x.axes[1].extent, ""}, {Expr(k - 1), ""}}, x.dtype);
    }
    const Value all = k > 1 ? c.kept(c.concatenated({state, x}, 2)) : x;
    const std::vector<Axis> axes = c.new_axes({x.axes[0].extent, x.axes[1].extent, x.axes[2].extent});
    const Axis &N = axes[0], &C = axes[1], &L = axes[2];
    const Axis tap = c.new_axis(Expr(k), axes);
    const Tile seen = in_these_dims(c, c.read(all, {at(N), at(C), at(L) + at(tap)}, {N, C, L, tap}), {N, C, L, tap});
    const Tile kernel = in_these_dims(c, c.read(w, {at(C), Expr(0), at(tap)}, {C, tap}), {C, tap});
    Tile y = c.f.fold(dot_monoid(seen.dtype()), {seen, kernel}, {tap.dim})[0].named("acc");
    if (c.has(2)) y = y + c.read(c.in(2), {at(C)}, {C});
    if (activation != "none") y = silu(y);
    std::vector<Value> results = {c.result(in_these_dims(c, y, axes), axes, x.dtype)};
    const std::vector<Axis> last = c.new_axes({x.axes[0].extent, x.axes[1].extent, Expr(k - 1)});
    results.push_back(c.result(c.read(all, {at(last[0]), at(last[1]), at(last[2]) + x.axes[2].extent}, last), last, state.dtype));
    return results;
}

struct Rule {
    bool decays = false, decays_by_element = false, corrects = false, corrects_by_head = false;
    double scale = 1;
};

// A token: the state (B, H, K, V) fades, takes the outer product of key and value, and is read by the query. With a correction the value
// is what the state does not give for the key yet (Yang et al. 2024).
Algorithm token_of(const Rule &rule) {
    Builder f("linear_attention_token");
    const Dim B = f.dim("B"), H = f.dim("H"), G = f.dim("G"), K = f.dim("K"), V = f.dim("V");
    const Tile q = f.input("q", {B, H, G, K}), k = f.input("k", {B, H, K}), v = f.input("v", {B, H, V});
    Tile state = f.input("state", {B, H, K, V}), value = v;
    if (rule.decays) {
        const Tile decay = rule.decays_by_element ? f.input("decay", {B, H, K}) : f.input("decay", {B, H});
        state = (state * exp(decay).named("fades")).named("faded");
    }
    if (rule.corrects) {
        const Tile beta = rule.corrects_by_head ? f.input("beta", {B, H}) : f.input("beta", {B});
        value = ((v - dot(state, k, {K}).named("retrieved")) * beta).named("correction");  // (B, H, V)
    }
    const Tile next = fma(broadcast(k, {B, H, K, V}), value, state).named("next");           // (B, H, K, V)
    f.output("o", dot(broadcast(q * rule.scale, {B, H, G, K}).named("scaled"), next, {K}));  // (B, H, G, V)
    return f.output("state_next", next).build();
}

std::vector<Value> linear_attention(Context &c) {
    const Value &q = c.in(0), &k = c.in(1), &v = c.in(2);
    const std::string name = c.node.text("update_rule", "gated_delta");
    Rule rule;
    rule.decays = name == "gated" || name == "gated_delta", rule.corrects = name == "delta" || name == "gated_delta";
    if (!rule.decays && !rule.corrects && name != "linear")
        c.refuse("its update_rule is '" + name + "'; expected linear, gated, delta or gated_delta.", "Check the exporter.");
    const int64_t all_heads = c.node.integer("q_num_heads"), heads = c.node.integer("kv_num_heads");
    if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || heads < 1 || all_heads < heads || all_heads % heads)
        c.refuse("expected queries, keys and values of 3 axes, and heads of queries that are a multiple of those of keys.",
                 "Check the exporter.");
    auto width = [&](const Value &x, int64_t number) {
        const int64_t hidden = c.fixed(x.axes[2], ("the last axis of '" + x.name + "'").c_str());
        if (hidden % number || hidden == 0)
            c.refuse(
                "'" + x.name + "' has rows of " + std::to_string(hidden) + " elements, which are no " + std::to_string(number) + " heads.",
                "Check the exporter.");
        return hidden / number;
    };
    const int64_t K_size = width(q, all_heads), V_size = width(v, heads);
    if (width(k, heads) != K_size) c.refuse("keys and queries have different widths.", "Check the exporter.");
    for (const Value *x : {&k, &v})
        for (size_t i = 0; i < 2; i++)
            if (!c.space.same(x->axes[i].extent, q.axes[i].extent))
                c.refuse("axis " + std::to_string(i) + " of '" + x->name + "' is not that of the queries.", Context::equal_extents,
                         "onnx.broadcast");
    rule.scale = c.node.real("scale", 0);
    if (rule.scale == 0) rule.scale = 1 / std::sqrt(static_cast<double>(K_size));
    const Expr each_k(K_size), each_v(V_size), group(all_heads / heads);
    const std::vector<Axis> axes = c.new_axes({q.axes[1].extent, q.axes[0].extent, Expr(heads), group, each_k, each_v});
    const Axis &T = axes[0], &B = axes[1], &H = axes[2], &G = axes[3], &K = axes[4], &V = axes[5];
    auto argument = [&](const char *stage, const Value &x, const std::vector<Expr> &index, const std::vector<Axis> &over) {
        return in_these_dims(c, cast(DType::f32, c.read(x, index, over)), over).named(stage);
    };
    std::vector<Tile> arguments = {
        argument("q", q, {at(B), at(T), (at(H) * group + at(G)) * each_k + at(K)}, {T, B, H, G, K}),
        argument("k", k, {at(B), at(T), at(H) * each_k + at(K)}, {T, B, H, K}),
        argument("v", v, {at(B), at(T), at(H) * each_v + at(V)}, {T, B, H, V}),
    };
    if (c.has(3)) {
        arguments.push_back(argument("state", c.in(3), {at(B), at(H), at(K), at(V)}, {B, H, K, V}));
    } else {
        const Tile zero(&c.f, constant(DType::f32, 0), {B.dim, H.dim, K.dim, V.dim});
        arguments.push_back(zero.named("state"));
    }
    for (size_t i = 4; i <= 5; i++)
        if (c.has(i) && c.in(i).rank() != 3) c.refuse("its decay or beta does not have 3 axes.", "Check the exporter.");
    if (rule.decays) {
        const int64_t size = c.fixed(c.in(4).axes.at(2), "the last axis of its decay");
        rule.decays_by_element = size != heads;
        if (rule.decays_by_element && size != heads * K_size)
            c.refuse("its decay has " + std::to_string(size) + " elements a token; expected one a head or one for each of its keys'.",
                     "Check the exporter.", "onnx.broadcast");
        arguments.push_back(rule.decays_by_element ? argument("decay", c.in(4), {at(B), at(T), at(H) * each_k + at(K)}, {T, B, H, K})
                                                   : argument("decay", c.in(4), {at(B), at(T), at(H)}, {T, B, H}));
    }
    if (rule.corrects) {
        const int64_t size = c.fixed(c.in(5).axes.at(2), "the last axis of its beta");
        rule.corrects_by_head = size == heads;
        if (size != 1 && size != heads)
            c.refuse("its beta has " + std::to_string(size) + " elements a token; expected 1 or one a head.", "Check the exporter.",
                     "onnx.broadcast");
        arguments.push_back(rule.corrects_by_head ? argument("beta", c.in(5), {at(B), at(T), at(H)}, {T, B, H})
                                                  : argument("beta", c.in(5), {at(B), at(T), Expr(0)}, {T, B}));
    }
    const Repeat rounds{.dim = T.dim, .carried = {{"state", "state_next"}}, .stacked = {"o"}};
    const std::vector<Tile> made = c.f.repeat("tokens", token_of(rule), rounds, arguments);
    auto named = [&](const Tile &tile, const std::vector<Axis> &over) {
        std::map<std::string, Expr> index;
        std::vector<std::string> dims;
        for (size_t i = 0; i < over.size(); i++) index[tile.dims().at(i)] = at(over[i]), dims.push_back(over[i].dim);
        return Tile(&c.f, substitute(tile.value(), index), dims);
    };
    const Tile o = named(made[0], {T, B, H, G, V});
    const std::vector<Axis> rows = c.new_axes({q.axes[0].extent, q.axes[1].extent, Expr(all_heads * V_size)});
    const Expr head = at(rows[2]) / each_v;
    const Tile y(
        &c.f,
        substitute(
            o.value(),
            {{T.dim, at(rows[1])}, {B.dim, at(rows[0])}, {H.dim, head / group}, {G.dim, head % group}, {V.dim, at(rows[2]) % each_v}}),
        {rows[0].dim, rows[1].dim, rows[2].dim});
    return {c.result(y, rows, q.dtype), c.result(named(made[1], {B, H, K, V}), {B, H, K, V}, c.has(3) ? c.in(3).dtype : q.dtype)};
}

}  // namespace

std::vector<Operator> state_operators() {
    return {
        {"TensorScatter", tensor_scatter},
        {"CausalConvWithState", causal_convolution},
        {"LinearAttention", linear_attention},
    };
}

}  // namespace tessera::onnx

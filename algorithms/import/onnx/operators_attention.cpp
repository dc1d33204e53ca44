// Attention: scores, what masks leave of them, and an online softmax over the keys, as library/attention.cpp has it, so that nothing of
// (queries, keys) is kept unless the model asks for it.
#include <algorithm>
#include <cmath>

#include "algorithms/build/rotary.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

// (B, positions, heads x width) as (B, heads, positions, width); a value of four axes as it is.
Value by_heads(Context &c, const Value &x, int64_t heads) {
    if (x.rank() == 4) return x;
    if (x.rank() != 3) c.refuse("'" + x.name + "' has " + std::to_string(x.rank()) + " axes; expected 3 or 4.", "Check the exporter.");
    const int64_t hidden = c.fixed(x.axes.at(2), ("the last axis of '" + x.name + "'").c_str());
    if (heads < 1 || hidden % heads)
        c.refuse("'" + x.name + "' has rows of " + std::to_string(hidden) + " elements, which are no " + std::to_string(heads) + " heads.",
                 "Check the exporter.");
    const Expr width(hidden / heads);
    const std::vector<Axis> axes = c.new_axes({x.axes[0].extent, Expr(heads), x.axes[1].extent, width});
    return c.result(c.read(x, {at(axes[0]), at(axes[2]), at(axes[1]) * width + at(axes[3])}, axes), axes, x.dtype);
}

Tile conjunction(const Tile &a, const Tile &b) { return a ? a && b : b; }

// The dims of an attention: B batches, H heads of keys, each shared by G of queries, S queries, T keys, of D elements, values of E. An
// axis of one element may have none.
class Attention {
public:
    Attention(Context &c, const Value &q, const Value &k, const Value &v, bool splits_heads) : c(c), q_(q), k_(k), v_(v) {
        for (const Value *x : {&q, &k, &v})
            if (x->rank() != 4)
                c.refuse("'" + x->name + "' has " + std::to_string(x->rank()) + " axes; expected 4, or 3 with numbers of heads.",
                         "Check the exporter.");
        auto agree = [&](const Value &x, size_t axis, const Value &y, const char *what) {
            if (!c.space.same(x.axes[axis].extent, y.axes[axis].extent))
                c.refuse("'" + x.name + "' and '" + y.name + "' have " + brief(x.axes[axis].extent) + " and " + brief(y.axes[axis].extent) +
                             " " + what + ".",
                         Context::equal_extents, "onnx.broadcast");
        };
        agree(q, 0, k, "batches"), agree(k, 0, v, "batches"), agree(k, 1, v, "heads"), agree(k, 2, v, "positions");
        agree(q, 3, k, "elements a position");
        Expr heads = q.axes[1].extent;
        if (!c.space.same(heads, k.axes[1].extent)) {
            const int64_t all = c.fixed(q.axes[1], "the number of heads of queries"), own = c.fixed(k.axes[1], "that of keys");
            if (own < 1 || all % own)
                c.refuse(std::to_string(all) + " heads of queries do not share " + std::to_string(own) + " of keys.",
                         "Check the exporter.");
            group = all / own;
            if (splits_heads) heads = Expr(own);
        }
        B = some(q.axes[0].extent), H = some(heads);
        G = splits_heads ? some(Expr(group)) : Axis{Expr(1), ""};
        S = some(q.axes[2].extent), T = add(k.axes[2].extent), D = add(q.axes[3].extent), E = add(v.axes[3].extent);
        head = G.extent.is_constant(1) ? at(H) : at(H) * G.extent + at(G);
        of_keys = splits_heads || group == 1 ? at(H) : at(H) / Expr(group);
    }

    Context &c;
    int64_t group = 1;  // of heads of queries that share one of keys
    Axis B, H, G, S, T, D, E;
    Expr head, of_keys;  // the number of the head among those of queries, and of keys

    // scale q k, over (B, H, G, S, T).
    Tile scores(double scale, DType type) {
        Tile queries = cast(type, read(q_, {at(B), head, at(S), at(D)}, {B, H, G, S, D}));
        queries = (queries * scale).named("scaled");
        const Tile keys = cast(type, read(k_, {at(B), of_keys, at(T), at(D)}, {B, H, T, D}));
        return in_order(c.f.fold(dot_monoid(type), {queries, keys}, {D.dim})[0].named("scores"), {B, H, G, S, T});
    }

    Tile values(DType type) { return cast(type, read(v_, {at(B), of_keys, at(T), at(E)}, {B, H, T, E})); }

    // What broadcasts to (B, heads, S, T), read at the attention's dims; a last axis that is shorter ends in `outside`.
    Tile mask(const Value &mask) {
        const std::vector<Axis> all = {B, {q_.axes[1].extent, ""}, S, T};
        const std::vector<Expr> at_all = {at(B), head, at(S), at(T)};
        if (mask.rank() > 4 || mask.rank() < 1)
            c.refuse("its mask has " + std::to_string(mask.rank()) + " axes; expected what broadcasts to four.", "Check the exporter.");
        std::vector<Expr> index;
        Expr inside;
        const size_t shift = 4 - mask.axes.size();
        for (size_t i = 0; i < mask.axes.size(); i++) {
            const Expr n = mask.axes[i].extent;
            const bool same = c.space.same(n, all[i + shift].extent);
            index.push_back(n.is_constant(1) ? Expr(0) : at_all[i + shift]);
            if (i + shift == 3 && !same) inside = at(T) < n;
            else if (!same && !n.is_constant(1))
                c.refuse("axis " + std::to_string(i) + " of its mask has " + brief(n) + " elements; expected 1 or " +
                             brief(all[i + shift].extent) + ".",
                         Context::equal_extents, "onnx.broadcast");
        }
        const Tile read = c.read(mask, index, {B, H, G, S, T});
        if (!inside.defined()) return over_used(read.value());
        const DType type = read.dtype();
        const Expr outside = type == DType::boolean ? constant_int(type, 0) : constant(type, -INFINITY);
        return over_used(select(inside, read_where(read.value(), inside), outside));
    }

    // An expression as a tile over those of the dims that it has.
    Tile over_used(const Expr &value) const {
        const Expr made = c.space.resolved(value);
        std::set<std::string> used;
        walk(made, [&](const Expr &e) {
            if (e.kind() == ExprKind::variable) used.insert(e->name);
        });
        std::vector<std::string> dims;
        for (const Axis *a : {&B, &H, &G, &S, &T})
            if (used.count(a->dim)) dims.push_back(a->dim);
        return Tile(&c.f, made, dims);
    }

    // A tile over (B, H, G, S, last) as ONNX has it: (B, heads, S, last), or with rows of all heads (B, S, heads x last).
    Value result(const Tile &tile, const Axis &last, DType dtype, bool joins_heads = false) {
        const bool splits = !G.dim.empty() && !H.dim.empty();
        if (!joins_heads && !splits) return c.result(tile, {B, H.dim.empty() ? G : H, S, last}, dtype);
        std::vector<Axis> others = {B, H, G, S, last};
        std::erase_if(others, [](const Axis &a) { return a.dim.empty(); });
        const Axis heads = c.new_axis(q_.axes[1].extent * (joins_heads ? last.extent : Expr(1)), others);
        std::map<std::string, Expr> index;
        const Expr number = joins_heads ? at(heads) / last.extent : at(heads);
        if (!H.dim.empty()) index[H.dim] = splits ? number / G.extent : number;
        if (!G.dim.empty()) index[G.dim] = splits ? number % G.extent : number;
        if (joins_heads) index[last.dim] = at(heads) % last.extent;
        std::vector<Axis> axes = {B, S, heads};
        if (!joins_heads) axes = {B, heads, S, last};
        std::vector<std::string> dims;
        for (const Axis &a : axes)
            if (!a.dim.empty()) dims.push_back(a.dim);
        return c.result(tile.at(index, dims), axes, dtype);
    }

    static Tile in_order(const Tile &tile, const std::vector<Axis> &axes) { return Context::in_order(tile, axes); }

private:
    const Value q_, k_, v_;
    std::vector<Axis> taken_;

    Axis add(const Expr &extent) {
        taken_.push_back(c.new_axis(extent, taken_));
        return taken_.back();
    }
    Axis some(const Expr &extent) {
        const Expr e = c.space.simplified(extent);
        return e.is_constant(1) ? Axis{e, ""} : add(e);
    }
    Tile read(const Value &x, const std::vector<Expr> &index, const std::vector<Axis> &axes) {
        const Tile made = in_order(c.read(x, index, axes), axes);
        return Tile(&c.f, c.space.resolved(made.value()), made.dims());
    }
};

DType softmax_type(Context &c, DType input) {
    const std::optional<DType> wanted = dtype_of(static_cast<int32_t>(c.node.integer("softmax_precision", type_number(DType::f32))));
    if (!wanted || !is_float(*wanted)) c.refuse("its softmax_precision is no type of floats.", "Check the exporter.", "onnx.type");
    return *wanted == DType::f64 || input == DType::f64 ? DType::f64 : DType::f32;
}

double scale_of(Context &c, const Axis &D) {
    if (c.node.find("scale")) return c.node.real("scale", 1);
    return 1 / std::sqrt(static_cast<double>(c.fixed(D, "the number of elements of a head, from which the scale follows,")));
}

// The number of keys before the first query's own.
Expr offset_of(Context &c, const Attention &a, const Expr &past) {
    if (!c.has(6)) return past;
    return cast(DType::index, c.read(c.in(6), {at(a.B)}, {a.B}).value()) - a.S.extent;
}

// The keys that a query sees as positions, counts and windows have it; nothing: all.
Tile seen_by_position(Context &c, const Attention &a, const Expr &past) {
    Expr seen;
    auto also = [&](const Expr &e) { seen = seen.defined() ? seen && e : e; };
    const int64_t left = c.node.integer("left_window_size", -1), right = c.node.integer("right_window_size", -1);
    const bool causal = c.node.integer("is_causal", 0) != 0;
    if (left < -1 || right < -1) c.refuse("its window sizes are below -1.", "Check the exporter.");
    if (causal || left >= 0 || right >= 0) {
        const Expr own = at(a.S) + offset_of(c, a, past), key = at(a.T);
        if (causal) also(key <= own);
        if (left >= 0) also(own - Expr(left) <= key);
        if (right >= 0) also(key <= own + Expr(right));
    }
    if (c.has(6)) also(at(a.T) < cast(DType::index, c.read(c.in(6), {at(a.B)}, {a.B}).value()));
    return seen.defined() ? a.over_used(seen) : Tile();
}

std::vector<Value> attention(Context &c) {
    const Value &q = c.in(0);
    if (c.has(4) != c.has(5)) c.refuse("it has past keys without past values, or values without keys.", "Check the exporter.");
    if (c.has(4) && c.has(6)) c.refuse("it has both past keys and numbers of keys.", "Check the exporter.");
    auto heads = [&](size_t i, const char *attribute) { return by_heads(c, c.in(i), c.in(i).rank() == 4 ? 0 : c.node.integer(attribute)); };
    const Value queries = heads(0, "q_num_heads");
    Value keys = heads(1, "kv_num_heads"), values = heads(2, "kv_num_heads");
    keys.name = c.in(1).name, values.name = c.in(2).name;
    Expr past(0);
    if (c.has(4)) {
        if (c.in(4).rank() != 4 || c.in(5).rank() != 4) c.refuse("its past keys and values do not have 4 axes.", "Check the exporter.");
        past = c.in(4).axes.at(2).extent;
        keys = c.kept(c.concatenated({c.in(4), keys}, 2)), values = c.kept(c.concatenated({c.in(5), values}, 2));
    }
    Attention a(c, queries, keys, values, true);
    const DType type = softmax_type(c, q.dtype);
    const Tile raw = a.scores(scale_of(c, a.D), type);
    Tile scores = raw;
    if (const double cap = c.node.real("softcap", 0); cap > 0) scores = tanh(scores / cap) * cap;
    const Tile capped = scores;
    Tile where = seen_by_position(c, a, past);
    if (c.has(3)) {
        const Tile mask = a.mask(c.in(3));
        if (mask.dtype() == DType::boolean) {
            where = conjunction(where, mask);
        } else {
            // A key whose mask is -inf is not seen, whatever its score.
            scores = scores + cast(type, mask);
            where = conjunction(where, mask != -INFINITY);
        }
    }
    if (!equal(scores.value(), raw.value())) scores = a.in_order(scores, {a.B, a.H, a.G, a.S, a.T}).named("masked");
    const std::vector<Tile> parts = c.f.fold(online_softmax_monoid(type, a.E.dim), {scores, a.values(type)}, {a.T.dim}, where);
    const Tile zero = c.f.scalar(type, 0), empty = parts[1] == zero;
    std::vector<Value> results = {a.result(select(empty, zero, parts[2] / parts[1]), a.E, q.dtype, q.rank() == 3), keys, values};
    if (c.node.outputs.size() < 4 || c.node.outputs[3].empty()) return results;
    Tile shown;
    switch (const int64_t mode = c.node.integer("qk_matmul_output_mode", 0); mode) {
    case 0: shown = raw; break;
    case 1: shown = capped; break;
    case 2: shown = where ? select(where, scores, c.f.scalar(type, -INFINITY)) : scores; break;
    case 3: shown = select(where ? conjunction(where, !empty) : !empty, exp_nonpositive(scores - parts[0]) / parts[1], zero); break;
    default: c.refuse("its qk_matmul_output_mode is " + std::to_string(mode) + "; expected 0 to 3.", "Check the exporter.");
    }
    results.push_back(a.result(a.in_order(shown, {a.B, a.H, a.G, a.S, a.T}), a.T, q.dtype));
    return results;
}

// The same with graphs of the model's own for scores and probabilities, of (B, heads, S, T).
std::vector<Value> flex_attention(Context &c) {
    const Value &q = c.in(0);
    Attention a(c, q, c.in(1), c.in(2), false);
    const DType type = softmax_type(c, q.dtype);
    const std::vector<Axis> axes = {a.B, a.H, a.S, a.T};
    Tile scores = a.scores(scale_of(c, a.D), type);
    auto modified = [&](const char *graph, const Tile &tile) {
        if (!c.node.find(graph)) return tile;
        if (!c.runner) c.refuse("a graph within a part.", "Check the exporter.");
        const std::vector<Value> made = c.runner->run(c.node.graph(graph), {c.result(tile, axes, type)});
        if (made.size() != 1 || made[0].rank() != 4)
            c.refuse(std::string("its ") + graph + " does not give one tensor of four axes.", "Check the exporter.");
        for (size_t i = 0; i < 4; i++)
            if (!c.space.same(made[0].axes[i].extent, axes[i].extent) && !made[0].axes[i].extent.is_constant(1))
                c.refuse(std::string("its ") + graph + " changes the shape.", "Check the exporter.", "onnx.broadcast");
        const Tile read = c.read(made[0], {at(a.B), at(a.H), at(a.S), at(a.T)}, axes);
        return cast(type, a.in_order(Tile(&c.f, c.space.resolved(read.value()), read.dims()), axes));
    };
    if (c.node.find("score_mod")) scores = modified("score_mod", scores).named("modified");
    if (!c.node.find("prob_mod")) return {a.result(online_softmax(scores, a.values(type), c.dim(a.T), c.dim(a.E)), a.E, q.dtype)};
    const Tile probabilities = modified("prob_mod", softmax(scores, c.dim(a.T))).named("probabilities");
    return {a.result(c.f.fold(dot_monoid(type), {probabilities, a.values(type)}, {a.T.dim})[0], a.E, q.dtype)};
}

// Pairs of elements turned by angles whose cosines and sines are given, by position or by what positions say.
std::vector<Value> rotary_embedding(Context &c) {
    const Value &x = c.in(0);
    const int64_t heads = x.rank() == 3 ? c.node.integer("num_heads", 0) : 0;
    const Value own = by_heads(c, x, heads);
    if (own.rank() != 4) c.refuse("its input has " + std::to_string(x.rank()) + " axes; expected 3 or 4.", "Check the exporter.");
    const int64_t width = c.fixed(own.axes[3], "the number of elements of a head");
    int64_t turned = c.node.integer("rotary_embedding_dim", 0);
    if (turned == 0) turned = width;
    if (turned < 2 || turned % 2 || turned > width)
        c.refuse("it turns " + std::to_string(turned) + " of " + std::to_string(width) + " elements of a head; expected an even number.",
                 "Check the exporter.");
    std::vector<Axis> axes;
    const Tile tile = c.spread(own, axes);  // (B, heads, S, D)
    const Axis pairs = c.new_axis(Expr(turned / 2), axes);
    auto angles = [&](size_t input) {
        const Value &table = c.in(input);
        const bool by_position = c.has(3);
        if (table.rank() != (by_position ? 2 : 3) || !c.space.same(table.axes.back().extent, pairs.extent))
            c.refuse("its table '" + table.name + "' does not have " + std::to_string(turned / 2) + " angles for each position.",
                     "Check the exporter.", "onnx.broadcast");
        std::vector<Expr> index = {at(axes[0]), at(axes[2]), at(pairs)};
        if (by_position) {
            const Expr position = c.space.resolved(c.read(c.in(3), {at(axes[0]), at(axes[2])}, {axes[0], axes[2]}).value());
            index = {bounded(position, Expr(0), table.axes[0].extent), at(pairs)};
        }
        return c.read(table, index, {axes[0], axes[2], pairs});
    };
    const Tile y = rotary(tile, c.dim(axes[3]), angles(1), angles(2), c.dim(pairs), c.node.integer("interleaved", 0) != 0);
    if (x.rank() == 4) return {c.result(Context::ordered(y, {tile}), axes, x.dtype)};
    const Tile rows = Context::in_order(y, {axes[0], axes[2], axes[1], axes[3]});
    const Value made = c.result(Tile(&c.f, c.space.resolved(rows.value()), rows.dims()).named("turned"), axes, x.dtype);
    const std::vector<Axis> joined = c.new_axes({x.axes[0].extent, x.axes[1].extent, x.axes[2].extent});
    const Expr D(width);
    return {c.result(c.read(made, {at(joined[0]), at(joined[2]) / D, at(joined[1]), at(joined[2]) % D}, joined), joined, x.dtype)};
}

}  // namespace

std::vector<Operator> attention_operators() {
    return {
        {"Attention", attention},
        {"FlexAttention", flex_attention, "ai.onnx.preview"},
        {"RotaryEmbedding", rotary_embedding},
    };
}

}  // namespace tessera::onnx

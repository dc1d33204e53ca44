// Attention of the domain com.microsoft, and the embeddings before it: by ONNX's own operators.
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/made_by.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

// `count` elements of an axis from `from` on.
Value part_of(Context &c, const Value &x, size_t axis, const Expr &from, const Expr &count) {
    std::vector<Expr> extents, index;
    for (const Axis &a : x.axes) extents.push_back(a.extent);
    extents[axis] = count;
    const std::vector<Axis> axes = c.new_axes(extents);
    for (const Axis &a : axes) index.push_back(at(a));
    index[axis] = index[axis] + from;
    return c.result(c.read(x, index, axes), axes, x.dtype);
}

// What is added to scores of keys that a mask leaves out: of (B) numbers of keys, of (B, T) or (B, S, T) 1 where a key counts.
Value added_by_mask(Context &c, const Value &mask, const Expr &B, const Expr &T) {
    const double filter = c.node.real("mask_filter_value", -10000);
    const auto kept_or_filtered = [&](const Tile &is_kept) {
        return select(is_kept, c.f.scalar(DType::f32, 0), c.f.scalar(DType::f32, filter));
    };
    if (mask.rank() == 1) {
        if (!c.space.same(mask.axes[0].extent, B))
            c.refuse("its mask has starts and ends; expected one number of keys for each batch, or a mask of two or three axes.",
                     "Export the model with a mask of two axes.");
        const std::vector<Axis> axes = c.new_axes({B, Expr(1), Expr(1), T});
        const Tile keys = c.read(mask, {at(axes[0])}, axes);
        const Expr is_kept = at(axes[3]) < cast(DType::index, c.space.resolved(keys.value()));
        std::vector<std::string> dims;
        for (const Axis &a : axes)
            if (!a.dim.empty()) dims.push_back(a.dim);
        return c.result(kept_or_filtered(Tile(&c.f, is_kept, dims)), axes, DType::f32);
    }
    if (mask.rank() != 2 && mask.rank() != 3)
        c.refuse("its mask has " + std::to_string(mask.rank()) + " axes; expected 1, 2 or 3.", "Export the model with a mask of two axes.");
    const Value made = c.element_wise({mask}, DType::f32, [&](const std::vector<Tile> &t) { return kept_or_filtered(t[0] > 0); })[0];
    std::vector<Expr> extents = {mask.axes[0].extent, Expr(1)};
    if (mask.rank() == 2) extents.emplace_back(1);
    for (size_t i = 1; i < mask.axes.size(); i++) extents.push_back(mask.axes[i].extent);
    return reshaped(c, made, extents);
}

struct Heads {
    Value q, k, v, past_k, past_v;
};

// The output, then keys and values with those of the past before them. `mask` and `bias` are inputs of the node.
Values attended(Context &c, const Heads &h, size_t mask, size_t bias) {
    const int64_t heads = c.node.integer("num_heads", 0);
    if (heads < 1) c.refuse("it has no number of heads.", "Check the exporter.");
    if (c.node.integer("do_rotary", 0)) c.refuse("it turns queries and keys by their positions.", "Export the model without do_rotary.");
    Expr T = h.k.axes.at(h.k.rank() == 4 ? 2 : 1).extent;
    if (!h.past_k.axes.empty()) T = c.space.simplified(T + h.past_k.axes.at(2).extent);
    Value added;
    if (c.has(mask)) added = added_by_mask(c, c.in(mask), h.q.axes[0].extent, T);
    if (c.has(bias)) added = added.axes.empty() ? c.in(bias) : sum_of(c, added, c.in(bias));
    std::vector<Attribute> attributes = {attribute("q_num_heads", heads), attribute("kv_num_heads", heads),
                                         attribute("is_causal", c.node.integer("unidirectional", 0))};
    if (const double scale = c.node.real("scale", 0); scale != 0) attributes.push_back(attribute("scale", scale));
    return made_by(c, "Attention", {h.q, h.k, h.v, added, h.past_k, h.past_v}, attributes, 3);
}

// Input, weights and bias of all queries, keys and values, as one product whose columns they are.
Values fused_attention(Context &c) {
    const Value &x = c.in(0), &w = c.in(1);
    if (x.rank() != 3 || w.rank() != 2) c.refuse("its input and weights do not have 3 and 2 axes.", "Check the exporter.");
    const int64_t all = c.fixed(w.axes[1], "the number of columns of its weights");
    std::vector<int64_t> sizes = c.node.integers("qkv_hidden_sizes");
    if (sizes.empty()) sizes = {all / 3, all / 3, all / 3};
    if (sizes.size() != 3 || sizes[0] < 1 || sizes[2] < 1 || sizes[0] != sizes[1] || sizes[0] + sizes[1] + sizes[2] != all)
        c.refuse("its weights have " + std::to_string(all) + " columns, which are not those of queries, keys and values.",
                 "Check the exporter.");
    Value joined = made_by(c, "MatMul", {x, w})[0];
    if (c.has(2)) joined = sum_of(c, joined, c.in(2));
    joined = c.settled(joined);
    const auto part = [&](int64_t from, int64_t count) { return part_of(c, joined, 2, Expr(from), Expr(count)); };
    Heads h = {part(0, sizes[0]), part(sizes[0], sizes[1]), part(sizes[0] + sizes[1], sizes[2]), {}, {}};
    if (c.has(4)) {
        const Value &past = c.in(4);
        if (past.rank() != 5 || c.node.integer("past_present_share_buffer", 0))
            c.refuse("its past has a buffer of its own, or not 5 axes.", "Export the model with a past of 5 axes.");
        const auto half = [&](int64_t which) {
            const std::vector<Axis> axes = c.new_axes({past.axes[1].extent, past.axes[2].extent, past.axes[3].extent, past.axes[4].extent});
            return c.result(c.read(past, {Expr(which), at(axes[0]), at(axes[1]), at(axes[2]), at(axes[3])}, axes), axes, past.dtype);
        };
        h.past_k = half(0), h.past_v = half(1);
    }
    Values made = attended(c, h, 3, 5);
    if (c.node.outputs.size() < 2 || c.node.outputs[1].empty()) return {made[0]};
    const auto with_heads = [&](Value v) {
        if (v.rank() == 3) {
            const int64_t heads = c.node.integer("num_heads", 0), width = c.fixed(v.axes[2], "the elements of a head") / heads;
            const std::vector<Axis> axes = c.new_axes({v.axes[0].extent, Expr(heads), v.axes[1].extent, Expr(width)});
            v = c.result(c.read(v, {at(axes[0]), at(axes[2]), at(axes[1]) * Expr(width) + at(axes[3])}, axes), axes, v.dtype);
        }
        return reshaped(c, c.kept(v), {Expr(1), v.axes[0].extent, v.axes[1].extent, v.axes[2].extent, v.axes[3].extent});
    };
    return {made[0], c.concatenated({with_heads(made[1]), with_heads(made[2])}, 0)};
}

Values multi_head_attention(Context &c) {
    if (!c.has(1) || !c.has(2) || c.in(0).rank() != 3)
        c.refuse("its queries, keys and values are in one tensor.", "Export the model with three.");
    if (c.node.outputs.size() > 3 && !c.node.outputs[3].empty())
        c.refuse("its products of queries and keys are wanted.", "Leave them out (--until).");
    Heads h = {c.in(0), c.in(1), c.in(2), given(c, 6), given(c, 7)};
    if (c.has(3)) {
        if (h.k.rank() != 3 || h.v.rank() != 3) c.refuse("it has a bias for keys that have heads already.", "Check the exporter.");
        Expr from(0);
        for (Value *v : {&h.q, &h.k, &h.v}) {
            const Expr columns = v->axes[2].extent;
            *v = c.settled(sum_of(c, *v, part_of(c, c.in(3), 0, from, columns)));
            from = c.space.simplified(from + columns);
        }
    }
    return attended(c, h, 4, 5);
}

// The sum of what tables have for words, positions and segments, normalized; the number of tokens of each text that its mask has; the sum.
Values embed_layer_normalization(Context &c) {
    const Value &ids = c.in(0), &places = c.in(3);
    if (ids.rank() != 2 || places.rank() != 2) c.refuse("its tokens and positions do not have 2 axes.", "Check the exporter.");
    Value place;
    if (c.has(8)) place = made_by(c, "Gather", {places, c.in(8)})[0];
    else place = part_of(c, places, 0, Expr(0), ids.axes[1].extent);
    Value sum = sum_of(c, made_by(c, "Gather", {c.in(2), ids})[0], place);
    if (c.has(1) && c.has(4)) sum = sum_of(c, sum, made_by(c, "Gather", {c.in(4), c.in(1)})[0]);
    sum = c.settled(sum);
    const Value y = made_by(c, "LayerNormalization", {sum, c.in(5), given(c, 6)},
                            {attribute("axis", int64_t(-1)), attribute("epsilon", c.node.real("epsilon", 1e-12))})[0];
    const Axis B{ids.axes[0].extent, ""};
    Value tokens = c.result(c.f.scalar(DType::i32, 0), {B}, DType::i32);
    if (c.has(7)) {
        const Value counts = c.element_wise({c.in(7)}, DType::i32, [&](const std::vector<Tile> &t) {
            return select(t[0] == 1, c.f.scalar(DType::i32, 1), c.f.scalar(DType::i32, 0));
        })[0];
        tokens = made_by(c, "ReduceSum", {counts, c.constant(Array(DType::i64, {1}, {1.0}))}, {attribute("keepdims", int64_t(0))})[0];
    }
    Values all = {y, tokens, sum};
    all.resize(std::min(all.size(), c.node.outputs.size()));
    return all;
}

}  // namespace

std::vector<Operator> fused_attention_operators() {
    constexpr const char *domain = "com.microsoft";
    return {
        {"Attention", fused_attention, domain},
        {"MultiHeadAttention", multi_head_attention, domain},
        {"EmbedLayerNormalization", embed_layer_normalization, domain},
    };
}

}  // namespace tessera::onnx

// Normalizations: over axes, channels and groups of channels, and by norms.
#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

Moments moments_over(Context &c, const Tile &t, const std::vector<std::string> &over, double epsilon) {
    std::vector<Dim> dims;
    for (const std::string &d : over) dims.push_back(c.f.dim_named(d));
    return moments(t, dims, c.f.scalar(t.dtype(), epsilon));
}

// x normalized over some of its axes.
Tile normalized_over(Context &c, const Tile &t, const std::vector<std::string> &over, double epsilon) {
    return Context::ordered(moments_over(c, t, over, epsilon).normalize(t), {t});
}

// By the moments of the batch, which also go into those that a model runs with.
std::vector<Value> trained_batch_normalization(Context &c) {
    const Value &x = c.in(0);
    if (c.opset < 14) c.refuse("it trains, as before opset 14.", "Export the model for inference, or with a newer opset.");
    const double momentum = c.node.real("momentum", 0.9);
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    if (axes.size() < 2) c.refuse("it trains on an input without channels.", "Export the model for inference.");
    std::vector<std::string> over;
    for (size_t i = 0; i < axes.size(); i++)
        if (i != 1) over.push_back(axes[i].dim);
    const Moments of = moments_over(c, t, over, c.node.real("epsilon", 1e-5));
    const Value y = c.result(Context::ordered(of.normalize(t), {t}), axes, x.dtype);
    std::vector<Value> results = c.element_wise({y, c.by_channel(c.in(1), x.axes.size()), c.by_channel(c.in(2), x.axes.size())}, x.dtype,
                                                [](const std::vector<Tile> &v) { return v[0] * v[1] + v[2]; });
    for (size_t i = 1; i <= 2 && i < c.node.outputs.size(); i++) {
        const Value now = c.result(i == 1 ? of.mean() : of.variance(), {axes[1]}, c.in(2 + i).dtype);
        results.push_back(c.element_wise({c.in(2 + i), now}, now.dtype,
                                         [&](const std::vector<Tile> &v) { return v[0] * momentum + v[1] * (1 - momentum); })[0]);
    }
    return results;
}

std::vector<Value> batch_normalization(Context &c) {
    const Value &x = c.in(0);
    if (c.node.integer("training_mode", 0)) return trained_batch_normalization(c);
    const double epsilon = c.node.real("epsilon", 1e-5);
    const size_t rank = std::max<size_t>(x.axes.size(), 2);
    const Value &gamma = c.in(1), &beta = c.in(2), &mean = c.in(3), &variance = c.in(4);
    // Constants give one factor and one summand a channel, made in double.
    if (gamma.is_constant() && beta.is_constant() && mean.is_constant() && variance.is_constant()) {
        const std::vector<double> g = gamma.constant->values(), b = beta.constant->values(), m = mean.constant->values(),
                                  v = variance.constant->values();
        std::vector<double> factor, summand;
        for (size_t i = 0; i < g.size(); i++) {
            factor.push_back(g[i] / std::sqrt(v[i] + epsilon));
            summand.push_back(b[i] - m[i] * factor.back());
        }
        const auto n = static_cast<int64_t>(g.size());
        Value scale = c.constant(Array(gamma.dtype, {n}, factor)), shift = c.constant(Array(gamma.dtype, {n}, summand));
        scale.axes = gamma.axes, shift.axes = beta.axes;
        scale.name = gamma.name + "_scale", shift.name = beta.name + "_shift";
        return c.element_wise({x, c.by_channel(scale, rank), c.by_channel(shift, rank)}, x.dtype,
                              [](const std::vector<Tile> &t) { return fma(t[0], t[1], t[2]); });
    }
    return c.element_wise({x, c.by_channel(gamma, rank), c.by_channel(beta, rank), c.by_channel(mean, rank), c.by_channel(variance, rank)},
                          x.dtype, [&](const std::vector<Tile> &t) { return (t[0] - t[3]) / sqrt(t[4] + epsilon) * t[1] + t[2]; });
}

// Scaled and shifted by channel, or whatever broadcasts.
std::vector<Value> with_scale(Context &c, const Value &y, const Value &scale, const Value *shift) {
    std::vector<Value> values = {y, scale};
    if (shift) values.push_back(*shift);
    return c.element_wise(values, y.dtype, [](const std::vector<Tile> &v) { return v.size() == 2 ? v[0] * v[1] : v[0] * v[1] + v[2]; });
}

std::vector<Value> layer_normalization(Context &c) {
    const Value &x = c.in(0);
    const int64_t axis = c.axis(c.node.integer("axis", -1), x.rank());
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::vector<std::string> over;
    for (size_t i = static_cast<size_t>(axis); i < axes.size(); i++) over.push_back(axes[i].dim);
    const Moments of = moments_over(c, t, over, c.node.real("epsilon", 1e-5));
    const Value y = c.result(Context::ordered(of.normalize(t), {t}), axes, x.dtype);
    std::vector<Value> results = with_scale(c, y, c.in(1), c.has(2) ? &c.in(2) : nullptr);
    std::vector<Axis> rows = axes;
    for (size_t i = static_cast<size_t>(axis); i < rows.size(); i++) rows[i] = {Expr(1), ""};
    const std::optional<DType> type = dtype_of(static_cast<int32_t>(c.node.integer("stash_type", 1)));
    for (size_t i = 1; i <= 2 && i < c.node.outputs.size(); i++) {
        if (!type || !is_float(*type)) c.refuse("its stash_type is no type of floats.", "Check the exporter.", "onnx.type");
        results.push_back(c.result(i == 1 ? of.mean() : of.inverse_deviation(), rows, *type));
    }
    return results;
}

std::vector<Value> rms_normalization(Context &c) {
    const Value &x = c.in(0);
    const double epsilon = c.node.real("epsilon", 1e-5);
    const int64_t axis = c.axis(c.node.integer("axis", -1), x.rank());
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::vector<std::string> over;
    Expr count = 1;
    for (size_t i = static_cast<size_t>(axis); i < axes.size(); i++) over.push_back(axes[i].dim), count = count * axes[i].extent;
    const Tile squares = c.f.fold(sum_monoid(t.dtype()), {t * t}, over)[0].named("squares");
    const Tile number(&c.f, cast(t.dtype(), c.space.simplified(count)), {});
    const Value y = c.result(Context::ordered(t / sqrt(squares / number + epsilon), {t}), axes, x.dtype);
    return c.element_wise({y, c.in(1)}, x.dtype, [](const std::vector<Tile> &v) { return v[0] * v[1]; });
}

std::vector<Value> instance_normalization(Context &c) {
    const Value &x = c.in(0);
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::vector<std::string> over;
    for (size_t i = 2; i < axes.size(); i++) over.push_back(axes[i].dim);
    const Value y = c.result(normalized_over(c, t, over, c.node.real("epsilon", 1e-5)), axes, x.dtype);
    const Value shift = c.by_channel(c.in(2), x.axes.size());
    return with_scale(c, y, c.by_channel(c.in(1), x.axes.size()), &shift);
}

// The moments are of groups of `each` channels; what is normalized keeps one axis of channels.
std::vector<Value> group_normalization(Context &c) {
    const Value &x = c.in(0);
    if (x.rank() < 2) c.refuse("its input has no channels.", "Check the exporter.");
    const int64_t groups = c.node.integer("num_groups"), channels = c.fixed(x.axes[1], "its number of channels");
    if (groups < 1 || channels % groups)
        c.refuse("its " + std::to_string(channels) + " channels are no " + std::to_string(groups) + " groups.", "Check the exporter.");
    const Expr each(channels / groups);
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::vector<Axis> taken = axes;
    const Axis G = c.new_axis(Expr(groups), taken);
    taken.push_back(G);
    const Axis K = c.new_axis(each, taken);
    std::vector<std::string> split, over = {K.dim};
    for (const std::string &d : t.dims()) {
        if (d == axes[1].dim) split.insert(split.end(), {G.dim, K.dim});
        else split.push_back(d);
    }
    for (size_t i = 2; i < axes.size(); i++) over.push_back(axes[i].dim);
    const Tile grouped = t.at({{axes[1].dim, at(G) * each + at(K)}}, split);
    const Moments of = moments_over(c, grouped, over, c.node.real("epsilon", 1e-5)).changed([&](const Tile &m) {
        return m.at({{G.dim, at(axes[1]) / each}}, {axes[0].dim, axes[1].dim});
    });
    const Value y = c.result(Context::ordered(of.normalize(t), {t}), axes, x.dtype);
    auto of_channels = [&](const Value &v) {  // one number a channel; before opset 21 one a group
        if (c.opset >= 21) return c.by_channel(v, x.axes.size());
        const Tile each_channel = c.read(v, {at(axes[1]) / each}, {axes[1]});
        std::vector<Axis> own(axes.size(), {Expr(1), ""});
        own[1] = axes[1];
        return c.result(each_channel, own, v.dtype);
    };
    const Value shift = of_channels(c.in(2));
    return with_scale(c, y, of_channels(c.in(1)), &shift);
}

std::vector<Value> mean_variance_normalization(Context &c) {
    const Value &x = c.in(0);
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::vector<std::string> over;
    for (int64_t i : c.axes(c.node.integers("axes", {0, 2, 3}), x.rank())) over.push_back(axes[static_cast<size_t>(i)].dim);
    return {c.result(normalized_over(c, t, over, 1e-18), axes, x.dtype)};  // ONNX has 1e-9 beside the deviation
}

std::vector<Value> norm_normalization(Context &c) {
    const Value &x = c.in(0);
    const int64_t p = c.node.integer("p", 2);
    if (p != 1 && p != 2) c.refuse("its p is " + std::to_string(p) + "; expected 1 or 2.", "Check the exporter.");
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    const std::string over = axes[static_cast<size_t>(c.axis(c.node.integer("axis", -1), x.rank()))].dim;
    const Tile sum = c.f.fold(sum_monoid(t.dtype()), {p == 1 ? abs(t) : t * t}, {over})[0].named("sum");
    const Tile norm = (p == 1 ? sum : sqrt(sum)).named("norm");
    return {c.result(Context::ordered(select(norm == 0.0, c.f.scalar(t.dtype(), 0), t / norm), {t}), axes, x.dtype)};
}

// Beside the squares of neighbouring channels.
std::vector<Value> local_response_normalization(Context &c) {
    const Value &x = c.in(0);
    const int64_t size = c.node.integer("size");
    if (x.rank() < 2 || size < 1) c.refuse("expected channels, and a size of at least 1.", "Check the exporter.");
    const double alpha = c.node.real("alpha", 1e-4), beta = c.node.real("beta", 0.75), bias = c.node.real("bias", 1);
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    const Axis C = axes[1], tap = c.new_axis(Expr(size), axes);
    const Expr channel = at(C) + at(tap) - Expr((size - 1) / 2), inside = Expr(0) <= channel && channel < C.extent;
    std::vector<std::string> dims = t.dims();
    dims.push_back(tap.dim);
    const Tile near = (t * t).at({{C.dim, channel}}, dims);
    const Tile squares(&c.f, select(inside, read_where(near.value(), inside), constant(t.dtype(), 0)), dims);
    const Tile sum = c.f.fold(sum_monoid(t.dtype()), {squares}, {tap.dim})[0].named("squares");
    return {c.result(Context::ordered(t / pow(bias + sum * (alpha / static_cast<double>(size)), beta), {t}), axes, x.dtype)};
}

}  // namespace

std::vector<Operator> normalization_operators() {
    return {
        {"BatchNormalization", batch_normalization}, {"LayerNormalization", layer_normalization},
        {"RMSNormalization", rms_normalization},     {"InstanceNormalization", instance_normalization},
        {"GroupNormalization", group_normalization}, {"MeanVarianceNormalization", mean_variance_normalization},
        {"LpNormalization", norm_normalization},     {"LRN", local_response_normalization},
    };
}

}  // namespace tessera::onnx

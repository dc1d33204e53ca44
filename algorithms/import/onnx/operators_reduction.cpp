// Operators that fold over axes.
#include <algorithm>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

struct Folded {
    Tile tile;               // with a dim for each axis
    std::vector<Axis> axes;  // of the input
    std::vector<int64_t> over;
    std::vector<std::string> dims;  // of `over`
    std::vector<Axis> result;
};

Folded prepared(Context &c, const Value &x, std::vector<int64_t> over, bool keeps) {
    Folded folded;
    folded.over = c.axes(std::move(over), x.rank());
    std::sort(folded.over.begin(), folded.over.end());
    folded.over.erase(std::unique(folded.over.begin(), folded.over.end()), folded.over.end());
    folded.tile = c.spread(x, folded.axes);
    for (int64_t i = 0; i < x.rank(); i++) {
        const bool is_over = std::binary_search(folded.over.begin(), folded.over.end(), i);
        const Axis &a = folded.axes[static_cast<size_t>(i)];
        if (is_over) folded.dims.push_back(a.dim);
        if (is_over && keeps) folded.result.push_back({Expr(1), ""});
        if (!is_over) folded.result.push_back(a);
    }
    return folded;
}

Tile count_of(Context &c, const Folded &folded, DType type) {
    Expr count = 1;
    for (int64_t i : folded.over) count = count * folded.axes[static_cast<size_t>(i)].extent;
    return Tile(&c.f, cast(type, c.space.simplified(count)), {});
}

Tile divided_by(const Tile &sum, const Tile &count) {
    if (is_float(sum.dtype())) return sum / count;
    const Tile down = sum / count;
    return select((sum % count) != 0.0 && sum < 0.0, down + 1.0, down);
}

enum class Reduction { sum, mean, max, min, product, l1, l2, log_sum, log_sum_exp, sum_square };

template <Reduction kind>
std::vector<Value> reduce(Context &c) {
    const Value &x = c.in(0);
    std::vector<int64_t> over = c.numbers("axes", 1);
    if (over.empty()) {
        if (c.node.integer("noop_with_empty_axes", 0)) {
            if constexpr (kind == Reduction::sum || kind == Reduction::mean || kind == Reduction::max || kind == Reduction::min ||
                          kind == Reduction::product)
                return {x};
        } else {
            for (int64_t i = 0; i < x.rank(); i++) over.push_back(i);
        }
    }
    Folded folded = prepared(c, x, over, c.node.integer("keepdims", 1) != 0);
    Tile t = folded.tile;
    if (t.dtype() == DType::boolean) t = cast(DType::i32, t);
    const DType type = t.dtype();
    auto fold = [&](const Monoid &monoid, const Tile &of) {
        if (folded.dims.empty()) return of;
        return c.f.fold(monoid, {of}, folded.dims)[0];
    };
    Tile made;
    switch (kind) {
    case Reduction::sum: made = fold(sum_monoid(type), t); break;
    case Reduction::mean: made = divided_by(fold(sum_monoid(type), t), count_of(c, folded, type)); break;
    case Reduction::max: made = fold(max_monoid(type), t); break;
    case Reduction::min: made = fold(min_monoid(type), t); break;
    case Reduction::product: made = fold(product_monoid(type), t); break;
    case Reduction::l1: made = fold(sum_monoid(type), abs(t)); break;
    case Reduction::sum_square: made = fold(sum_monoid(type), t * t); break;
    case Reduction::l2: {
        const Tile sum = fold(sum_monoid(type), t * t);
        made = is_float(type) ? sqrt(sum) : cast(type, sqrt(cast(DType::f64, sum)));
        break;
    }
    case Reduction::log_sum: {
        const Tile sum = fold(sum_monoid(type), t);
        made = is_float(type) ? log(sum) : cast(type, log(cast(DType::f64, sum)));
        break;
    }
    case Reduction::log_sum_exp: {
        const Tile f = is_float(type) ? t : cast(DType::f64, t);
        const Tile most = fold(max_monoid(f.dtype()), f);
        const Tile shift = select(abs(most) <= 1e30, most, most * 0.0);  // of infinities and NaN: the formula
        const Tile safe = select(shift == shift, shift, c.f.scalar(f.dtype(), 0));
        made = log(fold(sum_monoid(f.dtype()), exp(f - safe))) + safe;
        break;
    }
    }
    if (x.dtype == DType::boolean) made = kind == Reduction::max ? made > 0.0 : made != 0.0;
    return {c.result(Context::ordered(made, {folded.tile}), folded.result, x.dtype)};
}

template <bool largest>
std::vector<Value> arg(Context &c) {
    const Value &x = c.in(0);
    const int64_t axis = c.axis(c.node.integer("axis", 0), x.rank());
    const bool last = c.node.integer("select_last_index", 0) != 0;
    const Folded folded = prepared(c, x, {axis}, c.node.integer("keepdims", 1) != 0);
    const Dim over = c.f.dim_named(folded.dims[0]);
    Tile value = folded.tile;
    if (value.dtype() == DType::boolean) value = cast(DType::i32, value);
    if (!largest) value = is_float(value.dtype()) ? -value : -1.0 - value;
    const Tile position = cast(DType::i32, c.f.index(over));
    if (last) {  // the first one, counted from the end
        const Expr n = extent(over.name);
        value = value.at({{over.name, n - 1 - variable(over.name)}}, value.dims());
    }
    const Monoid monoid = argmax_monoid(value.dtype());
    Tile at = c.f.fold(monoid, {value, cast(monoid.inputs[1], position)}, {over.name})[1];
    if (last) at = Tile(&c.f, cast(at.dtype(), extent(over.name) - 1) - at.value(), at.dims());
    return {c.result(cast(DType::i64, at), folded.result, DType::i64)};
}

std::vector<Value> cumulative(Context &c) {
    const Value &x = c.in(0);
    const int64_t axis = c.axis(c.numbers(1, "axis").at(0), x.rank());
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    const Dim along = c.f.dim_named(axes[static_cast<size_t>(axis)].dim);
    const Monoid monoid = c.node.op == "CumProd" ? product_monoid(t.dtype()) : sum_monoid(t.dtype());
    const bool reverse = c.node.integer("reverse", 0) != 0, exclusive = c.node.integer("exclusive", 0) != 0;
    return {c.result(c.f.scan(monoid, t, along, !exclusive, reverse ? ScanDirection::backward : ScanDirection::forward), axes, x.dtype)};
}

// Before opset 13 the axes from `axis` on are one.
std::vector<Axis> together(Context &c, Tile &tile, std::vector<std::string> &over) {
    const Value &x = c.in(0);
    const int64_t axis = c.axis(c.node.integer("axis", c.opset < 13 ? 1 : -1), std::max<int64_t>(x.rank(), 1));
    std::vector<Axis> axes;
    tile = c.spread(x, axes);
    const auto from = static_cast<size_t>(axis);
    for (size_t i = from; i < (c.opset < 13 ? axes.size() : from + 1); i++) over.push_back(axes[i].dim);
    return axes;
}

std::vector<Value> softmax_handler(Context &c) {
    Tile t;
    std::vector<std::string> over;
    const std::vector<Axis> axes = together(c, t, over);
    const bool logarithm = c.node.op == "LogSoftmax";
    if (over.size() == 1 && !logarithm) return {c.result(softmax(t, c.f.dim_named(over[0])), axes, c.in(0).dtype)};
    const Tile most = c.f.fold(max_monoid(t.dtype()), {t}, over)[0].named("max");
    if (logarithm) {
        const Tile sum = c.f.fold(sum_monoid(t.dtype()), {exp_nonpositive(t - most)}, over)[0].named("sum");
        return {c.result(Context::ordered(t - most - log(sum), {t}), axes, c.in(0).dtype)};
    }
    const Tile e = exp_nonpositive(t - most).named("exp");
    const Tile sum = c.f.fold(sum_monoid(t.dtype()), {e}, over)[0].named("sum");
    return {c.result(Context::ordered(e / sum, {t}), axes, c.in(0).dtype)};
}

std::vector<Value> hardmax(Context &c) {
    Tile t;
    std::vector<std::string> over;
    const std::vector<Axis> axes = together(c, t, over);
    if (over.size() != 1) c.refuse("several axes are one.", "Export with opset 13 or newer.");
    const Dim d = c.f.dim_named(over[0]);
    const Monoid monoid = argmax_monoid(t.dtype());
    const Tile position = cast(monoid.inputs[1], c.f.index(d));
    const Tile at = c.f.fold(monoid, {t, position}, over)[1];
    const Tile one = c.f.scalar(t.dtype(), 1), zero = c.f.scalar(t.dtype(), 0);
    return {c.result(Context::ordered(select(at == position, one, zero), {t}), axes, c.in(0).dtype)};
}

}  // namespace

std::vector<Operator> reduction_operators() {
    return {
        {"ReduceSum", reduce<Reduction::sum>},
        {"ReduceMean", reduce<Reduction::mean>},
        {"ReduceMax", reduce<Reduction::max>},
        {"ReduceMin", reduce<Reduction::min>},
        {"ReduceProd", reduce<Reduction::product>},
        {"ReduceL1", reduce<Reduction::l1>},
        {"ReduceL2", reduce<Reduction::l2>},
        {"ReduceLogSum", reduce<Reduction::log_sum>},
        {"ReduceLogSumExp", reduce<Reduction::log_sum_exp>},
        {"ReduceSumSquare", reduce<Reduction::sum_square>},
        {"ArgMax", arg<true>},
        {"ArgMin", arg<false>},
        {"CumSum", cumulative},
        {"CumProd", cumulative},
        {"Softmax", softmax_handler},
        {"LogSoftmax", softmax_handler},
        {"Hardmax", hardmax},
    };
}

}  // namespace tessera::onnx

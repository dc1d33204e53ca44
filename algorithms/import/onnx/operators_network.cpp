// Products, convolutions and pools. With several axes of pixels the channels lie innermost in memory, whatever ONNX's
// order: stages are (N, pixels, channels).
#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"
#include "algorithms/import/onnx/products.h"

namespace tessera::onnx {

namespace {

std::vector<Value> matmul(Context &c) { return {product(c, c.in(0), c.in(1), c.in(0).dtype)}; }

Value exchanged(Context &c, const Value &x) {
    if (x.is_constant()) c.tile_in_order(x, {1, 0});
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::swap(axes[0], axes[1]);
    return c.result(t, axes, x.dtype);
}

std::vector<Value> gemm(Context &c) {
    Value a = c.in(0), b = c.in(1);
    if (c.node.integer("transA", 0)) a = exchanged(c, a);
    if (c.node.integer("transB", 0)) b = exchanged(c, b);
    return {scaled_with_bias(c, product(c, a, b, a.dtype), 2)};
}

std::vector<Value> conv(Context &c) { return {with_bias(c, convolved(c, c.in(0), c.in(1), c.in(0).dtype), 2)}; }

// The maxima over windows, and where each lies in x as one number for all axes.
std::vector<Value> maxima(Context &c, const Value &x, const Windows &w, const std::vector<Axis> &pixels, const Tile &seen, const Axis &N,
                          const Axis &C, const std::vector<Axis> &positions, const std::vector<Axis> &taps) {
    const Monoid monoid = argmax_monoid(seen.dtype());
    // What is padded is none, also where all else is -inf.
    Expr inside, tap = 0;
    std::vector<std::string> of_windows;
    for (size_t i = 0; i < pixels.size(); i++) {
        tap = tap * taps[i].extent + at(taps[i]);
        const Expr p = at(positions[i]) * Expr(w.strides[i]) + at(taps[i]) * Expr(w.dilations[i]) - Expr(w.begins[i]);
        const Expr here = Expr(0) <= p && p < pixels[i].extent;
        inside = inside.defined() ? inside && here : here;
        for (const Axis &a : {positions[i], taps[i]})
            if (!a.dim.empty()) of_windows.push_back(a.dim);
    }
    const Tile number = cast(monoid.inputs[1], Tile(&c.f, tap, dims_of(taps)));
    const std::vector<Tile> made = c.f.fold(monoid, {seen, number}, dims_of(taps), Tile(&c.f, inside, of_windows));
    std::vector<Axis> result = {N, C};
    result.insert(result.end(), positions.begin(), positions.end());
    // The tap's number as a position in x, rows first or columns first.
    std::vector<size_t> order(pixels.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    if (c.node.integer("storage_order", 0)) std::reverse(order.begin(), order.end());
    auto wide = [](const Expr &e) { return cast(DType::i64, e); };
    std::vector<Expr> within(pixels.size());
    Expr rest = cast(DType::i64, made[1].value());
    for (size_t i = pixels.size(); i-- > 0;) {
        const Expr n = wide(taps[i].extent);
        within[i] = wide(at(positions[i]) * Expr(w.strides[i]) - Expr(w.begins[i])) + rest % n * wide(Expr(w.dilations[i]));
        rest = rest / n;
    }
    Expr index = wide(at(N)) * wide(x.axes[1].extent) + wide(at(C));
    for (size_t i : order) index = index * wide(pixels[i].extent) + within[i];
    return {c.result(made[0], result, x.dtype), c.result(Tile(&c.f, index, made[1].dims()), result, DType::i64)};
}

std::vector<Value> pool(Context &c) {
    const Value &x = c.in(0);
    const bool is_max = c.node.op == "MaxPool", is_lp = c.node.op == "LpPool";
    const bool with_indices = is_max && c.node.outputs.size() > 1 && !c.node.outputs[1].empty();
    const std::vector<int64_t> size = c.node.integers("kernel_shape");
    const std::vector<Axis> pixels(x.axes.begin() + 2, x.axes.end());
    const bool ceils = c.node.integer("ceil_mode", 0) != 0;
    const Windows w = windows_of(c, pixels, size, ceils);
    Windows wide = w;  // with room for windows that reach past the end
    for (size_t i = 0; i < pixels.size() && ceils; i++) wide.ends[i] += w.strides[i];
    std::vector<Axis> taken;
    auto add = [&](const Expr &extent) {
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    const Axis N = add(x.axes[0].extent), C = add(x.axes[1].extent);
    std::vector<Axis> positions, taps;
    for (const Expr &p : w.positions) positions.push_back(add(p));
    for (int64_t s : size) taps.push_back(s == 1 ? Axis{Expr(1), ""} : add(Expr(s)));
    const bool whole = is_float(computed_as(x.dtype));
    const double least = is_max ? (whole ? -INFINITY : static_cast<double>(traits_of(x.dtype).lowest)) : 0;
    const DType held = computed_as(x.dtype);
    const Expr outside = whole ? constant(held, least) : constant_int(held, static_cast<int64_t>(least));
    Tile t = seen(c, x, wide, pixels, N, C, positions, taps, outside, at(C));
    const DType type = t.dtype();
    std::vector<std::string> over = dims_of(taps);
    std::vector<Axis> result = {N, C};
    result.insert(result.end(), positions.begin(), positions.end());
    if (with_indices) return maxima(c, x, w, pixels, t, N, C, positions, taps);
    if (is_max) return {c.result(c.f.fold(max_monoid(type), {t}, over)[0].named("max"), result, x.dtype)};
    if (is_lp) {
        const auto p = static_cast<double>(c.node.integer("p", 2));
        const Tile powers = p == 2 ? t * t : p == 1 ? abs(t) : pow(abs(t), p);
        const Tile sum = c.f.fold(sum_monoid(type), {powers}, over)[0].named("sum");
        return {c.result(p == 2 ? sqrt(sum) : p == 1 ? sum : pow(sum, 1 / p), result, x.dtype)};
    }
    const Tile sum = c.f.fold(sum_monoid(type), {t}, over)[0].named("sum");
    const bool counts_padding = c.node.integer("count_include_pad", 0) != 0;
    Expr count = 1;
    bool varies = false;
    for (size_t i = 0; i < pixels.size(); i++) {
        const bool pads = wide.begins[i] || wide.ends[i];
        if (!pads) {
            count = count * Expr(size[i]);
            continue;
        }
        // The taps begin + k d that lie within the picture, or, where padding counts, within it and its padding.
        varies = true;
        const Expr begin = at(positions[i]) * Expr(w.strides[i]) - Expr(w.begins[i]);
        const Expr low = counts_padding ? Expr(-w.begins[i]) : Expr(0);
        const Expr high = pixels[i].extent + (counts_padding ? Expr(w.ends[i]) : Expr(0));
        const Expr d(w.dilations[i]);
        const Expr first = max((low - begin + d - 1) / d, Expr(0)), last = min((high - begin + d - 1) / d, Expr(size[i]));
        count = count * (last - first);
    }
    const Expr number = cast(type, c.space.simplified(count));
    std::vector<std::string> counted;
    if (varies)
        for (const Axis &p : positions) counted.push_back(p.dim);
    const Tile divisor(&c.f, number, counted);
    return {c.result(Context::ordered(sum / divisor, {sum}), result, x.dtype)};
}

std::vector<Value> global_pool(Context &c) {
    const Value &x = c.in(0);
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    std::vector<std::string> over;
    Expr count = 1;
    std::vector<Axis> result = {axes[0], axes[1]};
    for (size_t i = 2; i < axes.size(); i++) {
        over.push_back(axes[i].dim);
        count = count * axes[i].extent;
        result.push_back({Expr(1), ""});
    }
    const DType type = t.dtype();
    if (c.node.op == "GlobalMaxPool") return {c.result(c.f.fold(max_monoid(type), {t}, over)[0].named("max"), result, x.dtype)};
    if (c.node.op == "GlobalLpPool") {
        const auto p = static_cast<double>(c.node.integer("p", 2));
        const Tile sum = c.f.fold(sum_monoid(type), {p == 2 ? t * t : pow(abs(t), p)}, over)[0].named("sum");
        return {c.result(p == 2 ? sqrt(sum) : pow(sum, 1 / p), result, x.dtype)};
    }
    const Tile sum = c.f.fold(sum_monoid(type), {t}, over)[0].named("sum");
    return {c.result(sum / Tile(&c.f, cast(type, c.space.simplified(count)), {}), result, x.dtype)};
}

}  // namespace

std::vector<Operator> network_operators() {
    return {
        {"MatMul", matmul},
        {"Gemm", gemm},
        {"Conv", conv},
        {"MaxPool", pool},
        {"AveragePool", pool},
        {"LpPool", pool},
        {"GlobalAveragePool", global_pool},
        {"GlobalMaxPool", global_pool},
        {"GlobalLpPool", global_pool},
    };
}

}  // namespace tessera::onnx

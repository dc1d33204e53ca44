// Products, convolutions and pools. With several axes of pixels the channels lie innermost in memory, whatever ONNX's
// order: stages are (N, pixels, channels).
#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

std::vector<std::string> dims_of(const std::vector<Axis> &axes) {
    std::vector<std::string> dims;
    for (const Axis &a : axes)
        if (!a.dim.empty()) dims.push_back(a.dim);
    return dims;
}

// Sum of products over dims that both have.
Tile multiplied(Context &c, const Tile &a, const Tile &b, const std::vector<Axis> &over) {
    std::vector<Dim> dims;
    std::vector<std::string> names;
    for (const Axis &o : over)
        if (!o.dim.empty()) dims.push_back(c.dim(o)), names.push_back(o.dim);
    if (dims.empty()) return (a * b).named("acc");
    if (is_float(a.dtype())) return dot(a, b, dims).named("acc");
    return c.f.fold(sum_monoid(a.dtype()), {a * b}, names)[0].named("acc");
}

Value product(Context &c, const Value &a, const Value &b, DType dtype) {
    const bool is_row = a.rank() == 1, is_column = b.rank() == 1;
    if (a.rank() == 0 || b.rank() == 0) c.refuse("a product of a scalar.", "Check the exporter.");
    const Expr K = a.axes.back().extent;
    const Axis &rows = b.axes[b.axes.size() - (is_column ? 1 : 2)];
    if (!c.space.same(K, rows.extent))
        c.refuse("it multiplies rows of " + brief(K) + " by columns of " + brief(rows.extent) + " elements.", "Fix the dims (--shape).",
                 "onnx.broadcast");
    // Outer axes, broadcast.
    const size_t outer_a = is_row ? 0 : a.axes.size() - 2, outer_b = is_column ? 0 : b.axes.size() - 2;
    const size_t outer = std::max(outer_a, outer_b);
    std::vector<Axis> axes;
    std::vector<bool> in_a(outer), in_b(outer);
    for (size_t i = 0; i < outer; i++) {
        const bool has_a = i + outer_a >= outer, has_b = i + outer_b >= outer;
        const Expr ea = has_a ? a.axes[i + outer_a - outer].extent : Expr(1), eb = has_b ? b.axes[i + outer_b - outer].extent : Expr(1);
        if (!ea.is_constant(1) && !eb.is_constant(1) && !c.space.same(ea, eb))
            c.refuse("its outer axes do not broadcast.", "Fix the dims (--shape).", "onnx.broadcast");
        in_a[i] = has_a && !ea.is_constant(1), in_b[i] = has_b && !eb.is_constant(1);
        axes.push_back(c.new_axis(ea.is_constant(1) ? eb : ea, axes));
    }
    std::vector<Axis> taken = axes, of_a, of_b;
    std::optional<Axis> M, N;
    auto add = [&](const Expr &extent) {
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    if (!is_row) M = add(a.axes[a.axes.size() - 2].extent);
    if (!is_column) N = add(b.axes.back().extent);
    const Axis k = add(K);
    std::vector<Expr> at_a, at_b;
    for (size_t i = 0; i < outer; i++) {
        if (i + outer_a >= outer) at_a.push_back(in_a[i] ? at(axes[i]) : Expr(0));
        if (i + outer_b >= outer) at_b.push_back(in_b[i] ? at(axes[i]) : Expr(0));
        if (in_a[i]) of_a.push_back(axes[i]);
        if (in_b[i]) of_b.push_back(axes[i]);
    }
    if (M) at_a.push_back(at(*M)), of_a.push_back(*M);
    at_a.push_back(at(k)), of_a.push_back(k);
    at_b.push_back(at(k)), of_b.push_back(k);
    if (N) at_b.push_back(at(*N)), of_b.push_back(*N);
    const Tile x = Context::in_order(c.read(a, at_a, of_a), of_a), w = Context::in_order(c.read(b, at_b, of_b), of_b);
    const Tile acc = multiplied(c, x, w, {k});
    if (M) axes.push_back(*M);
    if (N) axes.push_back(*N);
    return c.result(acc, axes, dtype);
}

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
    Value y = product(c, a, b, a.dtype);
    const double alpha = c.node.real("alpha", 1), beta = c.node.real("beta", 1);
    if (alpha != 1) y = c.element_wise({y}, y.dtype, [&](const std::vector<Tile> &t) { return t[0] * alpha; })[0];
    if (!c.has(2)) return {y};
    return c.element_wise({y, c.in(2)}, y.dtype, [&](const std::vector<Tile> &t) { return t[0] + (beta == 1 ? t[1] : t[1] * beta); });
}

// What a window sees along each axis of pixels.
struct Windows {
    std::vector<int64_t> strides, dilations, begins, ends;
    std::vector<Expr> positions;
};

Windows windows_of(Context &c, const std::vector<Axis> &pixels, const std::vector<int64_t> &taps, bool ceils) {
    const size_t n = pixels.size();
    Windows w;
    w.strides = c.node.integers("strides", std::vector<int64_t>(n, 1));
    w.dilations = c.node.integers("dilations", std::vector<int64_t>(n, 1));
    std::vector<int64_t> pads = c.node.integers("pads", std::vector<int64_t>(2 * n, 0));
    const std::string automatic = c.node.text("auto_pad", "NOTSET");
    if (w.strides.size() != n || w.dilations.size() != n || pads.size() != 2 * n || taps.size() != n)
        c.refuse("its strides, dilations, pads and kernel do not fit its " + std::to_string(n) + " axes of pixels.", "Check the exporter.");
    for (size_t i = 0; i < n; i++) {
        if (w.strides[i] < 1 || w.dilations[i] < 1) c.refuse("a stride or dilation below 1.", "Check the exporter.");
        const int64_t seen = w.dilations[i] * (taps[i] - 1) + 1;
        if (automatic == "VALID") pads[i] = pads[i + n] = 0;
        const Expr size = pixels[i].extent;
        if (automatic.starts_with("SAME")) {
            if (w.strides[i] == 1) {
                const int64_t all = seen - 1;
                pads[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
                pads[i + n] = all - pads[i];
            } else {
                const int64_t extent = c.fixed(pixels[i], "an axis of pixels with auto_pad and a stride");
                const int64_t positions = (extent + w.strides[i] - 1) / w.strides[i];
                const int64_t all = std::max<int64_t>((positions - 1) * w.strides[i] + seen - extent, 0);
                pads[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
                pads[i + n] = all - pads[i];
            }
        }
        w.begins.push_back(pads[i]), w.ends.push_back(pads[i + n]);
        const Expr room = size + Expr(pads[i] + pads[i + n] - seen);
        Expr positions;
        if (ceils) {
            positions = (room + Expr(w.strides[i] - 1)) / Expr(w.strides[i]) + 1;
            // A window that would begin in the padding at the end is left out.
            positions = min(positions, (size + Expr(pads[i] - 1)) / Expr(w.strides[i]) + 1);
        } else {
            positions = room / Expr(w.strides[i]) + 1;
        }
        w.positions.push_back(c.space.simplified(max(positions, Expr(0))));
    }
    return w;
}

// x (N, channels, pixels…) as windows see it: (N, positions…, taps…, C), read at `channel`, an index that C and groups make. What is padded
// is a stage with `outside` around, whose channels lie innermost.
Tile seen(Context &c, const Value &x, const Windows &w, const std::vector<Axis> &pixels, const Axis &N, const Axis &C,
          const std::vector<Axis> &positions, const std::vector<Axis> &taps, double outside, const Expr &channel) {
    bool pads = false;
    for (size_t i = 0; i < pixels.size(); i++) pads |= w.begins[i] != 0 || w.ends[i] != 0;
    std::vector<Axis> with_channel = {N};
    with_channel.insert(with_channel.end(), positions.begin(), positions.end());
    with_channel.insert(with_channel.end(), taps.begin(), taps.end());
    with_channel.push_back(C);
    std::vector<Expr> index = {at(N), channel};
    for (size_t i = 0; i < pixels.size(); i++) index.push_back(at(positions[i]) * Expr(w.strides[i]) + at(taps[i]) * Expr(w.dilations[i]));
    if (!pads) return Context::in_order(c.read(x, index, with_channel), with_channel);
    // (N, padded…, all channels)
    std::vector<Axis> padded_axes = {N};
    const Axis channels = c.new_axis(x.axes[1].extent, padded_axes);
    std::vector<Axis> taken = {N, channels};
    std::vector<Axis> padded;
    for (size_t i = 0; i < pixels.size(); i++) {
        padded.push_back(c.new_axis(pixels[i].extent + Expr(w.begins[i] + w.ends[i]), taken));
        taken.push_back(padded.back());
    }
    std::vector<Expr> inner = {at(N), at(channels)};
    Expr inside;
    for (size_t i = 0; i < pixels.size(); i++) {
        const Expr p = at(padded[i]) - Expr(w.begins[i]);
        inner.push_back(p);
        if (w.begins[i] == 0 && w.ends[i] == 0) continue;
        const Expr here = Expr(0) <= p && p < pixels[i].extent;
        inside = inside.defined() ? inside && here : here;
    }
    std::vector<Axis> order = {N};
    order.insert(order.end(), padded.begin(), padded.end());
    order.push_back(channels);
    const Tile read = Context::in_order(c.read(x, inner, order), order);
    const Expr value = c.space.resolved(
        select(inside, read_where(read.value(), inside),
               is_float(read.dtype()) ? constant(read.dtype(), outside) : constant_int(read.dtype(), static_cast<int64_t>(outside))));
    const Tile stage = Tile(&c.f, value, read.dims()).named("padded");
    std::map<std::string, Expr> to;
    for (size_t i = 0; i < padded.size(); i++) to[padded[i].dim] = index[i + 2];
    to[channels.dim] = channel;
    std::vector<std::string> names = dims_of(with_channel);
    return Tile(&c.f, substitute(stage.value(), to), names);
}

Value convolved(Context &c, const Value &x, const Value &weights, DType dtype) {
    if (x.rank() < 3 || weights.rank() != x.rank())
        c.refuse("expected an input and a kernel of one rank, of 3 or more.", "Check the exporter.");
    const size_t n = x.axes.size() - 2;
    const std::vector<Axis> pixels(x.axes.begin() + 2, x.axes.end());
    std::vector<int64_t> size;
    for (size_t i = 0; i < n; i++) size.push_back(c.fixed(weights.axes[i + 2], "the size of its kernel"));
    const Windows w = windows_of(c, pixels, size, false);
    const int64_t group = c.node.integer("group", 1);
    const Expr all_outputs = weights.axes[0].extent, in_group = weights.axes[1].extent;
    const bool grouped = group > 1, depthwise = grouped && in_group.is_constant(1) && c.space.number(all_outputs) == group;
    const int64_t outputs = grouped && !depthwise ? c.fixed(weights.axes[0], "its number of output channels") : 0;
    const int64_t inner = grouped && !depthwise ? c.fixed(weights.axes[1], "its number of channels in a group") : 1;
    if (group < 1 || (grouped && !depthwise && outputs % group))
        c.refuse("its " + std::to_string(outputs) + " channels are no " + std::to_string(group) + " groups.", "Check the exporter.");
    const Expr channels = depthwise ? all_outputs : grouped ? Expr(inner * group) : in_group;
    if (!c.space.same(x.axes[1].extent, channels))
        c.refuse("its input has " + brief(x.axes[1].extent) + " channels, its kernel " + brief(in_group) + " for each of " +
                     std::to_string(group) + " groups.",
                 "Check the exporter.", "onnx.broadcast");
    std::vector<Axis> taken;
    auto add = [&](const Expr &extent) {
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    const Axis N = add(x.axes[0].extent);
    std::vector<Axis> positions, taps;
    for (const Expr &p : w.positions) positions.push_back(add(p));
    for (int64_t s : size) taps.push_back(s == 1 ? Axis{Expr(1), ""} : add(Expr(s)));
    const int64_t each = outputs / group;
    const std::optional<Axis> G = grouped ? std::optional<Axis>(add(depthwise ? all_outputs : Expr(group))) : std::nullopt;
    const std::optional<Axis> C = depthwise ? std::nullopt : std::optional<Axis>(add(grouped ? Expr(inner) : in_group));
    const std::optional<Axis> O = depthwise ? std::nullopt : std::optional<Axis>(add(grouped ? Expr(each) : all_outputs));
    Expr channel = C ? at(*C) : Expr(0);
    if (G) channel = C ? at(*G) * Expr(inner) + at(*C) : at(*G);
    // The kernel lies as (taps, inner, outputs).
    std::vector<int64_t> order;
    for (size_t i = 0; i < n; i++) order.push_back(static_cast<int64_t>(i + 2));
    order.push_back(1), order.push_back(0);
    c.tile_in_order(weights, order);
    std::vector<Expr> at_w = {G ? (O ? at(*G) * Expr(each) + at(*O) : at(*G)) : at(*O), C ? at(*C) : Expr(0)};
    for (const Axis &t : taps) at_w.push_back(at(t));
    std::vector<Axis> of_w = taps;
    if (G) of_w.push_back(*G);
    if (C) of_w.push_back(*C);
    if (O) of_w.push_back(*O);
    const Tile kernel = Context::in_order(c.read(weights, at_w, of_w), of_w);
    Tile picture = seen(c, x, w, pixels, N, G ? *G : *C, positions, taps, 0, channel);
    if (G && C) {
        std::vector<std::string> dims = picture.dims();
        dims.push_back(C->dim);
        picture = Tile(&c.f, picture.value(), dims);
    }
    std::vector<Axis> over = taps;
    if (C) over.push_back(*C);
    const Tile acc = multiplied(c, picture, kernel, over);
    // (N, positions…, G, O) is (N, positions…, outputs).
    std::vector<Axis> result = {N};
    if (!grouped || depthwise) {
        result.push_back(grouped ? *G : *O);
        result.insert(result.end(), positions.begin(), positions.end());
        return c.result(acc, result, dtype);
    }
    const Axis all = c.new_axis(Expr(outputs), taken);
    std::map<std::string, Expr> split = {{G->dim, at(all) / Expr(each)}, {O->dim, at(all) % Expr(each)}};
    std::vector<std::string> dims = {N.dim};
    for (const Axis &p : positions) dims.push_back(p.dim);
    dims.push_back(all.dim);
    result.push_back(all);
    result.insert(result.end(), positions.begin(), positions.end());
    return c.result(Tile(&c.f, substitute(acc.value(), split), dims), result, dtype);
}

std::vector<Value> conv(Context &c) {
    Value y = convolved(c, c.in(0), c.in(1), c.in(0).dtype);
    if (!c.has(2)) return {y};
    return c.element_wise({y, c.by_channel(c.in(2), y.axes.size())}, y.dtype, [](const std::vector<Tile> &t) { return t[0] + t[1]; });
}

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
    const double outside = is_max ? (whole ? -INFINITY : static_cast<double>(traits_of(x.dtype).lowest)) : 0;
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

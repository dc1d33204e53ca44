#include "algorithms/import/onnx/products.h"

#include <algorithm>

#include "algorithms/build/tile_functions.h"

namespace tessera::onnx {

std::vector<std::string> dims_of(const std::vector<Axis> &axes) {
    std::vector<std::string> dims;
    for (const Axis &a : axes)
        if (!a.dim.empty()) dims.push_back(a.dim);
    return dims;
}

// What is computed and then read many times is a stage of the type that holds it: codes stay bytes.
static Tile stored_narrow(const Tile &tile) {
    const Tile narrow = Context::as_stored(tile);
    if (is_arithmetic(narrow.dtype()) || narrow.value().kind() == ExprKind::load || narrow.value().is_constant()) return tile;
    return narrow.named("codes");
}

// Sum of products over dims that both have.
static Tile multiplied(Context &c, const Tile &a, const Tile &b, const std::vector<Axis> &over) {
    std::vector<Dim> dims;
    for (const Axis &o : over)
        if (!o.dim.empty()) dims.push_back(c.dim(o));
    if (dims.empty()) return (a * b).named("acc");
    return dot(stored_narrow(a), stored_narrow(b), dims).named("acc");
}

Value product(Context &c, const Value &a, const Value &b, DType dtype) {
    const bool is_row = a.rank() == 1, is_column = b.rank() == 1;
    if (a.rank() == 0 || b.rank() == 0) c.refuse("a product of a scalar.", "Check the exporter.");
    const Expr K = a.axes.back().extent;
    const Axis &rows = b.axes[b.axes.size() - (is_column ? 1 : 2)];
    if (!c.space.same(K, rows.extent))
        c.refuse("it multiplies rows of " + brief(K) + " by columns of " + brief(rows.extent) + " elements.", Context::equal_extents,
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
            c.refuse("its outer axes do not broadcast.", Context::equal_extents, "onnx.broadcast");
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

Tile seen(Context &c, const Value &x, const Windows &w, const std::vector<Axis> &pixels, const Axis &N, const Axis &C,
          const std::vector<Axis> &positions, const std::vector<Axis> &taps, const Expr &outside, const Expr &channel) {
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
    const Expr value = c.space.resolved(select(inside, read_where(read.value(), inside), outside));
    const Tile stage = Context::as_stored(Tile(&c.f, value, read.dims()), x.dtype).named("padded");
    std::map<std::string, Expr> to;
    for (size_t i = 0; i < padded.size(); i++) to[padded[i].dim] = index[i + 2];
    to[channels.dim] = channel;
    std::vector<std::string> names = dims_of(with_channel);
    return Tile(&c.f, substitute(stage.value(), to), names);
}

Value convolved(Context &c, const Value &x, const Value &weights, DType dtype, const Convolution &how) {
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
    const DType type = computed_as(x.dtype);
    const Expr outside = how.outside.defined() ? how.outside : is_float(type) ? constant(type, 0) : constant_int(type, 0);
    Tile picture = seen(c, x, w, pixels, N, G ? *G : *C, positions, taps, outside, channel);
    if (G && C) {
        std::vector<std::string> dims = picture.dims();
        dims.push_back(C->dim);
        picture = Tile(&c.f, picture.value(), dims);
    }
    std::vector<Axis> over = taps;
    if (C) over.push_back(*C);
    // (N, positions…, G, O) is (N, positions…, outputs). A sum has no O.
    const auto result_of = [&](const Tile &acc, bool has_outputs) {
        std::vector<Axis> result = {N};
        if (!grouped || depthwise) {
            result.push_back(grouped ? *G : has_outputs ? *O : Axis{Expr(1), ""});
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
    };
    if (how.sums) {
        const std::vector<std::string> summed = dims_of(over);
        *how.sums = result_of(summed.empty() ? picture : c.f.fold(sum_monoid(type), {picture}, summed)[0].named("sums"), false);
    }
    return result_of(multiplied(c, picture, kernel, over), true);
}

Value with_bias(Context &c, const Value &y, size_t input) {
    if (!c.has(input)) return y;
    return c.element_wise({y, c.by_channel(c.in(input), y.axes.size())}, y.dtype,
                          [](const std::vector<Tile> &t) { return t[0] + t[1]; })[0];
}

Value scaled_with_bias(Context &c, const Value &y, size_t input) {
    const double alpha = c.node.real("alpha", 1), beta = c.node.real("beta", 1);
    const Value scaled = alpha == 1 ? y : c.element_wise({y}, y.dtype, [&](const std::vector<Tile> &t) { return t[0] * alpha; })[0];
    if (!c.has(input)) return scaled;
    return c.element_wise({scaled, c.in(input)}, y.dtype,
                          [&](const std::vector<Tile> &t) { return t[0] + (beta == 1 ? t[1] : t[1] * beta); })[0];
}

}  // namespace tessera::onnx

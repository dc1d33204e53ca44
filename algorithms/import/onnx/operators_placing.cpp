// Operators that say where elements go: crops to the middle, reversed sequences, columns and maxima back to where they were seen.
#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

Expr zero_of(DType type) { return is_float(type) ? constant(type, 0) : constant_int(type, 0); }

Expr both(const Expr &a, const Expr &b) { return a.defined() ? a && b : b; }

// The middle of each axis, or zeros around it.
std::vector<Value> center_crop_pad(Context &c) {
    const Value &x = c.in(0);
    const std::vector<Expr> wanted = c.integers(1, "shape");
    std::vector<int64_t> over = c.node.integers("axes");
    if (!c.node.find("axes"))
        for (int64_t i = 0; i < x.rank(); i++) over.push_back(i);
    over = c.axes(over, x.rank());
    if (wanted.size() != over.size())
        c.refuse("its shape has " + std::to_string(wanted.size()) + " elements for " + std::to_string(over.size()) + " axes.",
                 "Check the exporter.");
    std::vector<Expr> extents;
    for (const Axis &a : x.axes) extents.push_back(a.extent);
    for (size_t i = 0; i < over.size(); i++) extents[static_cast<size_t>(over[i])] = wanted[i];
    const std::vector<Axis> axes = c.new_axes(extents);
    std::vector<Expr> index;
    for (const Axis &a : axes) index.push_back(at(a));
    Expr inside;
    for (int64_t axis : over) {
        const auto i = static_cast<size_t>(axis);
        const Expr before = c.space.simplified(x.axes[i].extent), after = c.space.simplified(extents[i]);
        if (c.space.same(before, after)) continue;
        // What is cut or added at the beginning is rounded down.
        const Expr more = after - before;
        index[i] = c.space.simplified(at(axes[i]) + select(more < Expr(0), Expr(0) - more, Expr(0)) / Expr(2) -
                                      select(more > Expr(0), more, Expr(0)) / Expr(2));
        const std::optional<int64_t> growth = c.space.number(more);
        if (!growth || *growth > 0) inside = both(inside, Expr(0) <= index[i] && index[i] < before);
    }
    Tile t = c.read(x, index, axes);
    if (inside.defined()) t = Tile(&c.f, select(inside, read_where(c.space.resolved(t.value()), inside), zero_of(t.dtype())), t.dims());
    return {c.result(t, axes, x.dtype)};
}

// The first elements of each sequence, as many as its length says, in the other order.
std::vector<Value> reverse_sequence(Context &c) {
    const Value &x = c.in(0), &lengths = c.in(1);
    const auto batch = static_cast<size_t>(c.axis(c.node.integer("batch_axis", 1), x.rank()));
    const auto time = static_cast<size_t>(c.axis(c.node.integer("time_axis", 0), x.rank()));
    if (batch == time) c.refuse("its batch_axis is its time_axis.", "Check the exporter.");
    std::vector<Axis> axes;
    c.spread(x, axes);
    std::vector<Expr> index;
    for (const Axis &a : axes) index.push_back(at(a));
    const Expr length = c.space.resolved(c.read(lengths, {at(axes[batch])}, axes).value());
    const Expr t = cast(length.type(), at(axes[time])), one = constant_int(length.type(), 1);
    index[time] = bounded(select(t < length, length - one - t, t), Expr(0), axes[time].extent);
    const Value source = x.is_constant() || x.is_known() || x.tile.value().kind() == ExprKind::load ? x : c.kept(x);
    return {c.result(c.read(source, index, axes), axes, x.dtype)};
}

// Columns of taps, (N, channels taps, positions), added where they were seen: what Im2Col's gradient is. Position p sums the taps k that
// reach it, of the block (p + pad - dilation k) / stride.
std::vector<Value> columns_to_image(Context &c) {
    const Value &x = c.in(0);
    const std::vector<Expr> image = c.integers(1, "image_shape");
    const std::vector<int64_t> block = c.numbers(2, "block_shape");
    const size_t n = block.size();
    const std::vector<int64_t> strides = c.node.integers("strides", std::vector<int64_t>(n, 1)),
                               dilations = c.node.integers("dilations", std::vector<int64_t>(n, 1)),
                               pads = c.node.integers("pads", std::vector<int64_t>(2 * n, 0));
    if (x.rank() != 3 || image.size() != n || strides.size() != n || dilations.size() != n || pads.size() != 2 * n)
        c.refuse("its shapes, strides, dilations and pads are not those of " + std::to_string(n) + " axes.", "Check the exporter.");
    int64_t taps = 1;
    for (size_t i = 0; i < n; i++) {
        if (block[i] < 1 || strides[i] < 1 || dilations[i] < 1 || __builtin_mul_overflow(taps, block[i], &taps))
            c.refuse("a block, stride or dilation below 1.", "Check the exporter.");
    }
    std::vector<Axis> taken;
    auto add = [&](const Expr &extent) {
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    const Axis N = add(x.axes[0].extent), C = add(x.axes[1].extent / Expr(taps));
    std::vector<Axis> pixels, of_taps;
    for (const Expr &e : image) pixels.push_back(add(e));
    for (int64_t k : block) of_taps.push_back(k == 1 ? Axis{Expr(1), ""} : add(Expr(k)));
    Expr inside, tap = 0, position = 0, all = 1;
    for (size_t i = 0; i < n; i++) {
        const Expr s(strides[i]);
        const Expr blocks = (image[i] + Expr(pads[i] + pads[i + n] - dilations[i] * (block[i] - 1) - 1)) / s + 1;
        const Expr reached = at(pixels[i]) + Expr(pads[i]) - at(of_taps[i]) * Expr(dilations[i]);
        Expr here = Expr(0) <= reached && reached / s < blocks;
        if (strides[i] > 1) here = here && reached % s == Expr(0);
        inside = both(inside, here);
        tap = tap * Expr(block[i]) + at(of_taps[i]);
        position = position * blocks + reached / s;
        all = all * blocks;
    }
    if (!c.space.same(all, x.axes[2].extent))
        c.refuse(
            "it has " + brief(c.space.simplified(x.axes[2].extent)) + " columns; its shapes say " + brief(c.space.simplified(all)) + ".",
            "Check the exporter.", "onnx.broadcast");
    // The position is inside where each part of it is.
    const Expr clamped = max(min(position, x.axes[2].extent - 1), Expr(0));
    std::vector<Axis> axes = {N, C};
    axes.insert(axes.end(), pixels.begin(), pixels.end());
    std::vector<Axis> with_taps = axes;
    with_taps.insert(with_taps.end(), of_taps.begin(), of_taps.end());
    const Tile t = c.read(x, {at(N), at(C) * Expr(taps) + tap, c.space.simplified(clamped)}, with_taps);
    const Tile seen(&c.f, select(inside, read_where(c.space.resolved(t.value()), inside), zero_of(t.dtype())), t.dims());
    std::vector<std::string> over;
    for (const Axis &a : of_taps)
        if (!a.dim.empty()) over.push_back(a.dim);
    const Tile sum = over.empty() ? seen : c.f.fold(sum_monoid(t.dtype()), {seen}, over)[0].named("image");
    return {c.result(sum, axes, x.dtype)};
}

// Each maximum at the index that MaxPool gave beside it, zeros elsewhere.
std::vector<Value> max_unpool(Context &c) {
    const Value &x = c.in(0), &indices = c.in(1);
    const size_t n = x.axes.size() - 2;
    const std::vector<int64_t> kernel = c.node.integers("kernel_shape"), strides = c.node.integers("strides", std::vector<int64_t>(n, 1)),
                               pads = c.node.integers("pads", std::vector<int64_t>(2 * n, 0));
    if (x.rank() < 3 || kernel.size() != n || strides.size() != n || pads.size() != 2 * n || indices.axes.size() != x.axes.size())
        c.refuse("its kernel, strides, pads and indices are not those of " + std::to_string(n) + " axes of pixels.", "Check the exporter.");
    std::vector<Expr> extents = {x.axes[0].extent, x.axes[1].extent};
    for (size_t i = 0; i < n; i++)
        extents.push_back(c.space.simplified((x.axes[i + 2].extent - 1) * Expr(strides[i]) + Expr(kernel[i] - pads[i] - pads[i + n])));
    std::vector<Axis> own;
    const Tile t = c.spread(x, own);
    std::vector<Expr> index;
    for (const Axis &a : own) index.push_back(at(a));
    const Expr flat = cast(DType::i64, c.space.resolved(c.read(indices, index, own).value()));
    // Positions over new dims, so that none is an index of the maxima.
    std::vector<Axis> taken = own, pixels;
    for (const Expr &e : extents) {
        taken.push_back(c.new_axis(e, taken));
        pixels.push_back(taken.back());
    }
    std::vector<Tile> where(extents.size());
    std::vector<Dim> dims;
    Expr below = 1;
    for (size_t i = extents.size(); i-- > 0;) {
        const Expr step = cast(DType::i64, c.space.simplified(below)), count = cast(DType::i64, extents[i]);
        const Expr part = i ? flat / step % count : flat / step;
        where[i] = Tile(&c.f, part, t.dims());
        below = below * extents[i];
    }
    for (const Axis &p : pixels) dims.push_back(c.dim(p));
    const Tile most = c.f.scatter(max_monoid(t.dtype()), t, where, dims).named("maxima");
    const Tile ones(&c.f, constant_int(DType::i32, 1), t.dims());
    const Tile hits = c.f.scatter(sum_monoid(DType::i32), ones, where, dims).named("hits");
    Value y = c.result(select(hits > 0.0, most, Tile(&c.f, zero_of(t.dtype()), {})), pixels, x.dtype);
    if (!c.has(2)) return {y};
    const std::vector<Expr> wanted = c.integers(2, "output_shape");
    if (wanted.size() != extents.size())
        c.refuse("its output_shape has " + std::to_string(wanted.size()) + " axes; expected " + std::to_string(extents.size()) + ".",
                 "Check the exporter.");
    y = c.kept(y);
    const std::vector<Axis> result = c.new_axes(wanted);
    std::vector<Expr> to;
    Expr inside;
    for (size_t i = 0; i < result.size(); i++) {
        to.push_back(at(result[i]));
        if (!c.space.same(wanted[i], extents[i])) inside = both(inside, at(result[i]) < extents[i]);
    }
    Tile placed = c.read(y, to, result);
    if (inside.defined()) placed = Tile(&c.f, select(inside, read_where(placed.value(), inside), zero_of(placed.dtype())), placed.dims());
    return {c.result(placed, result, x.dtype)};
}

// Columns of the last axis, at positions that data tells.
std::vector<Value> array_feature_extractor(Context &c) {
    const Value &x = c.in(0), &y = c.in(1);
    std::vector<Expr> extents;
    for (size_t i = 0; i + 1 < x.axes.size(); i++) extents.push_back(x.axes[i].extent);
    if (extents.empty()) extents.push_back(Expr(1));
    Expr count = 1;
    for (const Axis &a : y.axes) count = count * a.extent;
    if (y.rank() > 1 && !y.axes[0].extent.is_constant(1)) c.refuse("its positions are no row.", "Check the exporter.");
    extents.push_back(count);
    const std::vector<Axis> axes = c.new_axes(extents);
    std::vector<Expr> of_y(y.axes.size(), Expr(0)), index;
    if (!of_y.empty()) of_y.back() = at(axes.back());
    for (size_t i = 0; i + 1 < x.axes.size(); i++) index.push_back(at(axes[i]));
    index.push_back(bounded(c.space.resolved(c.read(y, of_y, axes).value()), Expr(0), x.axes.back().extent));
    return {c.result(c.read(x, index, axes), axes, x.dtype)};
}

}  // namespace

std::vector<Operator> placing_operators() {
    return {
        {"CenterCropPad", center_crop_pad},
        {"ReverseSequence", reverse_sequence},
        {"Col2Im", columns_to_image},
        {"MaxUnpool", max_unpool},
        {"ArrayFeatureExtractor", array_feature_extractor, "ai.onnx.ml"},
    };
}

}  // namespace tessera::onnx

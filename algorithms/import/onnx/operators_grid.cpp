// Operators that read pictures between their pixels, at positions that data tells: grids, regions and convolutions that are deformed.
#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

enum class Interpolation { nearest, linear, cubic };
enum class Beyond { zeros, border, reflection };  // what a picture has beyond its pixels

// Along one axis of pixels: its extent, where the picture ends (at the centers of the last pixels or at their rims), and where it is read.
struct Coordinate {
    Expr extent;
    Tile position;
    bool to_centers = true;
};

// A pixel that takes part, its share, and whether it is there.
struct Pixel {
    Expr index, weight, inside;  // undefined: 1, always
};

struct Ends {
    Expr low, high;
};

Ends ends_of(const Coordinate &k, DType type) {
    const Expr last = cast(type, k.extent - 1), half = constant(type, 0.5);
    if (k.to_centers) return {constant(type, 0), last};
    return {constant(type, -0.5), last + half};
}

// There and back again between the ends.
Expr reflected(const Expr &x, const Ends &e) {
    const Expr range = e.high - e.low, zero = constant(x.type(), 0), half = constant(x.type(), 0.5), two = constant(x.type(), 2);
    const Expr below = x < e.low, distance = select(below, e.low - x, x - e.high);
    const Expr times = floor(distance / range), rest = distance - times * range;
    const Expr from_low = below == (times == floor(times * half) * two);
    const Expr around = select(from_low, e.low + rest, e.high - rest);
    return select(range > zero, select(x < e.low || x > e.high, around, x), e.low);
}

// The position within what may be read, or a little beyond, so that it is an integer of few digits.
Expr drawn_in(const Expr &x, const Coordinate &k, Beyond beyond) {
    const Ends e = ends_of(k, x.type());
    const Expr zero = constant(x.type(), 0), last = cast(x.type(), k.extent - 1), far = constant(x.type(), 4);
    if (beyond == Beyond::reflection) return reflected(x, e);
    if (beyond == Beyond::border) return select(x < e.low || x > e.high, min(max(x, zero), last), x);
    return min(max(x, zero - far), last + far);
}

std::vector<Pixel> pixels_at(const Coordinate &k, Interpolation mode, Beyond beyond) {
    const Expr x = k.position.value();
    const DType type = x.type();
    auto number = [&](double v) { return constant(type, v); };
    const Expr first = mode == Interpolation::nearest ? x : floor(x), share = x - first;
    std::vector<std::pair<int, Expr>> parts;
    if (mode == Interpolation::nearest) {
        parts = {{0, Expr()}};
    } else if (mode == Interpolation::linear) {
        parts = {{0, number(1) - share}, {1, share}};
    } else {
        // Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -3/4.
        const double a = -0.75;
        auto outer = [&](const Expr &d) { return ((number(a) * d - number(5 * a)) * d + number(8 * a)) * d - number(4 * a); };
        auto inner = [&](const Expr &d) { return (number(a + 2) * d - number(a + 3)) * d * d + number(1); };
        parts = {{-1, outer(share + number(1))}, {0, inner(share)}, {1, inner(number(1) - share)}, {2, outer(number(2) - share)}};
    }
    std::vector<Pixel> all;
    for (const auto &[shift, weight] : parts) {
        Expr pixel = shift ? first + number(shift) : first;
        if (beyond == Beyond::reflection && mode != Interpolation::nearest) pixel = reflected(pixel, ends_of(k, type));
        const Expr at = cast(DType::i32, pixel);
        Pixel made{bounded(at, Expr(0), k.extent), weight, {}};
        if (beyond == Beyond::zeros) made.inside = constant_int(DType::i32, 0) <= at && at < cast(DType::i32, k.extent);
        all.push_back(std::move(made));
    }
    return all;
}

// The products of pixels and their shares, whose sum is the picture x (N, channels, pixels…) between its pixels: over `axes`.
std::vector<Tile> shares(Context &c, const Value &x, const std::vector<Expr> &outer, const std::vector<Coordinate> &coordinates,
                         Interpolation mode, Beyond beyond, const std::vector<Axis> &axes) {
    const DType own = computed_as(x.dtype), type = is_float(own) ? own : DType::f32;
    std::vector<Pixel> all = {{}};
    std::vector<std::vector<Expr>> indices = {outer};
    for (const Coordinate &k : coordinates) {
        std::vector<Pixel> next;
        std::vector<std::vector<Expr>> positions;
        const std::vector<Pixel> along = pixels_at(k, mode, beyond);
        for (size_t i = 0; i < all.size(); i++)
            for (const Pixel &p : along) {
                Pixel made = all[i];
                if (p.weight.defined()) made.weight = made.weight.defined() ? made.weight * p.weight : p.weight;
                if (p.inside.defined()) made.inside = made.inside.defined() ? made.inside && p.inside : p.inside;
                next.push_back(made);
                positions.push_back(indices[i]);
                positions.back().push_back(p.index);
            }
        all = std::move(next), indices = std::move(positions);
    }
    std::vector<Tile> made;
    for (size_t i = 0; i < all.size(); i++) {
        const Tile read = c.read(x, indices[i], axes);
        Expr value = c.space.resolved(read.value());
        if (all[i].inside.defined())
            value = select(all[i].inside, read_where(value, all[i].inside), is_float(own) ? constant(own, 0) : constant_int(own, 0));
        if (all[i].weight.defined()) value = cast(type, value) * cast(type, all[i].weight);
        made.emplace_back(&c.f, value, read.dims());
    }
    return made;
}

Tile sum_of(const std::vector<Tile> &tiles) {
    Tile sum = tiles.at(0);
    for (size_t i = 1; i < tiles.size(); i++) sum = sum + tiles[i];
    return sum;
}

// What is read at positions that data tells is computed once before.
Value stored(Context &c, const Value &x) {
    return x.is_constant() || x.is_known() || x.tile.value().kind() == ExprKind::load ? x : c.kept(x);
}

Tile stage_over(Context &c, const Expr &value, const std::vector<Axis> &axes, const std::string &name) {
    std::vector<std::string> dims;
    for (const Axis &a : axes)
        if (!a.dim.empty()) dims.push_back(a.dim);
    return Tile(&c.f, c.space.resolved(value), dims).named(name);
}

Interpolation interpolation_of(Context &c, const std::string &mode) {
    if (mode == "nearest") return Interpolation::nearest;
    if (mode == "linear" || mode == "bilinear") return Interpolation::linear;
    if (mode == "cubic" || mode == "bicubic") return Interpolation::cubic;
    c.refuse("its mode is '" + mode + "'; Tessera has nearest, linear and cubic.", "Export it with one of them.");
}

std::vector<Value> grid_sample(Context &c) {
    const Value x = stored(c, c.in(0)), &grid = c.in(1);
    const Interpolation mode = interpolation_of(c, c.node.text("mode", "linear"));
    const std::string padding = c.node.text("padding_mode", "zeros");
    const Beyond beyond = padding == "border" ? Beyond::border : padding == "reflection" ? Beyond::reflection : Beyond::zeros;
    if (beyond == Beyond::zeros && padding != "zeros")
        c.refuse("its padding_mode is '" + padding + "'; expected zeros, border or reflection.", "Check the exporter.");
    const bool to_centers = c.node.integer("align_corners", 0) != 0;
    const size_t n = x.axes.size() - 2;
    if (x.rank() < 3 || grid.axes.size() != n + 2 || !c.space.same(grid.axes.back().extent, Expr(static_cast<int64_t>(n))))
        c.refuse("its grid is not one of " + std::to_string(n) + " coordinates for as many axes of pixels.", "Check the exporter.");
    if (!c.space.same(x.axes[0].extent, grid.axes[0].extent))
        c.refuse("it has " + brief(x.axes[0].extent) + " pictures and " + brief(grid.axes[0].extent) + " grids.", Context::equal_extents,
                 "onnx.broadcast");
    std::vector<Expr> extents = {x.axes[0].extent, x.axes[1].extent};
    for (size_t i = 0; i < n; i++) extents.push_back(grid.axes[i + 1].extent);
    const std::vector<Axis> axes = c.new_axes(extents);
    std::vector<Axis> points = axes;
    points.erase(points.begin() + 1);
    std::vector<Coordinate> coordinates;
    for (size_t i = 0; i < n; i++) {
        std::vector<Expr> index;
        for (const Axis &a : points) index.push_back(at(a));
        index.push_back(Expr(static_cast<int64_t>(n - 1 - i)));  // the last axis of pixels comes first
        const Expr g = c.read(grid, index, points).value();
        const DType type = g.type();
        const Expr one = constant(type, 1), half = constant(type, 0.5), size = cast(type, x.axes[i + 2].extent);
        Expr position = to_centers ? (g + one) * half * (size - one) : ((g + one) * size - one) * half;
        if (mode == Interpolation::nearest) position = round(position);
        Coordinate k{x.axes[i + 2].extent, {}, to_centers};
        k.position = stage_over(c, drawn_in(position, k, beyond), points, "at" + std::to_string(i));
        coordinates.push_back(k);
    }
    const std::vector<Tile> parts = shares(c, x, {at(axes[0]), at(axes[1])}, coordinates, mode, beyond, axes);
    return {c.result(Context::ordered(sum_of(parts), {parts[0]}), axes, x.dtype)};
}

// The grid of an affine map: theta (N, n, n + 1) times (the coordinates of each point, 1), the last axis of pixels first.
std::vector<Value> affine_grid(Context &c) {
    const Value &theta = c.in(0);
    const std::vector<Expr> size = c.integers(1, "size");
    const bool to_centers = c.node.integer("align_corners", 0) != 0;
    const auto n = static_cast<int64_t>(size.size()) - 2;
    if (n < 1 || theta.rank() != 3 || !c.space.same(theta.axes[1].extent, Expr(n)) || !c.space.same(theta.axes[2].extent, Expr(n + 1)))
        c.refuse("its theta is no map of the axes that its size has.", "Check the exporter.");
    std::vector<Expr> extents = {theta.axes[0].extent};
    extents.insert(extents.end(), size.begin() + 2, size.end());
    extents.push_back(Expr(n));
    const std::vector<Axis> axes = c.new_axes(extents);
    Expr sum;
    for (int64_t k = 0; k <= n; k++) {
        Expr product = c.read(theta, {at(axes[0]), at(axes.back()), Expr(k)}, axes).value();
        const DType type = product.type();
        if (k < n) {
            const Axis &a = axes[static_cast<size_t>(n - k)];
            const Expr i = cast(type, at(a)), one = constant(type, 1), two = constant(type, 2);
            const Expr from = to_centers ? i * two / max(cast(type, a.extent - 1), one) : (i * two + one) / cast(type, a.extent);
            product = product * (from - one);
        }
        sum = sum.defined() ? sum + product : product;
    }
    std::vector<std::string> dims;
    for (const Axis &a : axes) dims.push_back(a.dim);
    return {c.result(Tile(&c.f, sum, dims), axes, theta.dtype)};
}

// Regions of pictures as means or maxima of samples (He et al., "Mask R-CNN", 2017): x (N, C, H, W), regions (R, 4) as x0, y0, x1, y1.
std::vector<Value> roi_align(Context &c) {
    const Value x = stored(c, c.in(0)), &regions = c.in(1), &pictures = c.in(2);
    const int64_t height = c.node.integer("output_height", 1), width = c.node.integer("output_width", 1),
                  ratio = c.node.integer("sampling_ratio", 0);
    const double scale = c.node.real("spatial_scale", 1);
    const bool half_pixel =
        c.node.text("coordinate_transformation_mode", c.opset < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
    const bool is_max = c.node.text("mode", "avg") == "max";
    if (x.rank() != 4 || regions.rank() != 2 || !c.space.same(regions.axes[1].extent, Expr(4)) || height < 1 || width < 1)
        c.refuse("its input is no (N, C, H, W), or its regions are no (R, 4).", "Check the exporter.");
    const double shift = half_pixel ? 0.5 : 0;
    int64_t samples[2] = {ratio, ratio};
    if (ratio <= 0) {
        // As many as the region has pixels for each of the result's.
        if (!regions.is_constant())
            c.refuse("its number of samples depends on its regions, which are data.",
                     "Give it a sampling_ratio, or bind the regions (--bind).", "onnx.unknown");
        const std::vector<double> all = regions.constant->values();
        samples[0] = samples[1] = 1;
        for (size_t r = 0; r + 3 < all.size(); r += 4)
            for (size_t i = 0; i < 2; i++) {
                const double length = (all[r + 3 - i] - all[r + 1 - i]) * scale / static_cast<double>(i ? width : height);
                if (!(length <= 4096)) c.refuse("one of its regions is longer than 4096 pixels a sample.", "Check the regions.");
                samples[i] = std::max(samples[i], static_cast<int64_t>(std::ceil(std::max(length, 1.0))) + 1);
            }
    }
    std::vector<Axis> taken;
    auto add = [&](const Expr &extent) {
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    const Axis R = add(regions.axes[0].extent), C = add(x.axes[1].extent), P = add(Expr(height)), Q = add(Expr(width)),
               Y = add(Expr(samples[0])), X = add(Expr(samples[1]));
    std::vector<Coordinate> coordinates;
    Expr inside, counts, where;
    for (size_t i = 0; i < 2; i++) {
        const Axis &bin = i ? Q : P, &sample = i ? X : Y;
        auto corner = [&](size_t which) {
            const Expr e = c.read(regions, {at(R), Expr(static_cast<int64_t>(which))}, {R}).value();
            return e * constant(e.type(), scale) - constant(e.type(), shift);
        };
        const Expr begin = corner(1 - i), end = corner(3 - i);
        const DType type = begin.type();
        const Expr length = half_pixel ? end - begin : max(end - begin, constant(type, 1));
        const Expr size = length / constant(type, static_cast<double>(i ? width : height));
        Expr count = constant(type, static_cast<double>(samples[i]));
        if (ratio <= 0) {
            count = max(operation(Op::ceil, {size}), constant(type, 0));
            const Expr taken_here = cast(type, at(sample)) < count;
            where = where.defined() ? where && taken_here : taken_here;
        }
        counts = counts.defined() ? counts * count : count;
        const Expr position = begin + cast(type, at(bin)) * size + (cast(type, at(sample)) + constant(type, 0.5)) * size / count;
        const Expr high = cast(type, x.axes[i + 2].extent), zero = constant(type, 0);
        const Expr here = position >= constant(type, -1) && position <= high;
        inside = inside.defined() ? inside && here : here;
        Coordinate k{x.axes[i + 2].extent, {}};
        k.position = stage_over(c, min(max(position, zero), high - constant(type, 1)), {R, bin, sample}, i ? "x" : "y");
        coordinates.push_back(k);
    }
    const Expr picture = c.space.resolved(c.read(pictures, {at(R)}, {R}).value());
    const std::vector<Axis> axes = {R, C, P, Q, Y, X}, result = {R, C, P, Q};
    const std::vector<Tile> parts =
        shares(c, x, {bounded(picture, Expr(0), x.axes[0].extent), at(C)}, coordinates, Interpolation::linear, Beyond::border, axes);
    Tile value = is_max ? parts[0] : sum_of(parts);
    for (size_t i = 1; i < parts.size() && is_max; i++) value = max(value, parts[i]);
    const DType type = value.dtype();
    // A sample that lies outside counts as 0.
    std::vector<std::string> dims;
    for (const Axis &a : axes) dims.push_back(a.dim);
    inside = c.space.resolved(inside);
    const Tile seen(&c.f, select(inside, read_where(value.value(), inside), constant(type, 0)), dims);
    Tile taken_where;
    if (where.defined()) taken_where = Tile(&c.f, c.space.resolved(where), {R.dim, P.dim, Q.dim, Y.dim, X.dim});
    const Tile folded = c.f.fold(is_max ? max_monoid(type) : sum_monoid(type), {seen}, {Y.dim, X.dim}, taken_where)[0].named("samples");
    const Tile count(&c.f, cast(type, max(c.space.resolved(counts), constant(counts.type(), 1))),
                     ratio <= 0 ? std::vector{R.dim} : std::vector<std::string>{});
    if (!is_max) return {c.result(Context::ordered(folded / count, {folded}), result, x.dtype)};
    if (!where.defined()) return {c.result(folded, result, x.dtype)};
    const Tile none(&c.f, c.space.resolved(counts) < constant(counts.type(), 0.5), {R.dim});
    return {c.result(Context::ordered(select(none, c.f.scalar(type, 0), folded), {folded}), result, x.dtype)};
}

// A convolution whose taps are read where offsets say, times a mask (Dai et al. 2017, Zhu et al. 2019).
std::vector<Value> deformed_convolution(Context &c) {
    const Value x = stored(c, c.in(0)), &w = c.in(1), &offset = c.in(2);
    const size_t n = x.axes.size() - 2;
    const int64_t group = c.node.integer("group", 1), offset_group = c.node.integer("offset_group", 1);
    const std::vector<int64_t> strides = c.node.integers("strides", std::vector<int64_t>(n, 1)),
                               dilations = c.node.integers("dilations", std::vector<int64_t>(n, 1)),
                               pads = c.node.integers("pads", std::vector<int64_t>(2 * n, 0));
    if (x.rank() < 3 || w.rank() != x.rank() || offset.rank() != x.rank() || strides.size() != n || dilations.size() != n ||
        pads.size() != 2 * n || group < 1 || offset_group < 1)
        c.refuse("its kernel, offsets, strides, dilations and pads do not fit " + std::to_string(n) + " axes of pixels.",
                 "Check the exporter.");
    const int64_t channels = c.fixed(x.axes[1], "its number of channels"), outputs = c.fixed(w.axes[0], "its number of output channels"),
                  inner = c.fixed(w.axes[1], "its number of channels in a group");
    if (inner * group != channels || outputs % group || channels % offset_group)
        c.refuse("its " + std::to_string(channels) + " channels are not those of its kernel and groups.", "Check the exporter.",
                 "onnx.broadcast");
    int64_t taps = 1;
    std::vector<int64_t> size;
    for (size_t i = 0; i < n; i++) size.push_back(c.fixed(w.axes[i + 2], "the size of its kernel")), taps *= size.back();
    if (!c.space.same(offset.axes[1].extent, Expr(offset_group * taps * static_cast<int64_t>(n))))
        c.refuse("its offsets are not those of " + std::to_string(offset_group) + " groups of " + std::to_string(taps) + " taps.",
                 "Check the exporter.", "onnx.broadcast");
    std::vector<Axis> taken;
    auto add = [&](int64_t known, const Expr &extent) {
        if (known == 1) return Axis{Expr(1), ""};
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    const Axis N = add(0, x.axes[0].extent);
    std::vector<Axis> positions, of_taps;
    for (size_t i = 0; i < n; i++) positions.push_back(add(0, offset.axes[i + 2].extent));
    for (int64_t s : size) of_taps.push_back(add(s, Expr(s)));
    const Axis G = add(group, Expr(group)), C = add(inner, Expr(inner));
    const int64_t each = outputs / group;
    const Axis O = add(each, Expr(each));
    const Expr channel = at(G) * Expr(inner) + at(C), of_offset = channel / Expr(channels / offset_group);
    std::vector<Axis> axes = {N};
    for (const auto &part : {positions, of_taps, {G, C}})
        for (const Axis &a : part)
            if (!a.dim.empty()) axes.push_back(a);
    Expr tap = 0;
    for (size_t i = 0; i < n; i++) tap = tap * Expr(size[i]) + at(of_taps[i]);
    auto of_points = [&](const Value &value, const Expr &at_channel) {
        std::vector<Expr> index = {at(N), c.space.simplified(at_channel)};
        for (const Axis &p : positions) index.push_back(at(p));
        return c.space.resolved(c.read(value, index, axes).value());
    };
    std::vector<Coordinate> coordinates;
    for (size_t i = 0; i < n; i++) {
        const Expr moved =
            of_points(offset, ((of_offset * Expr(taps) + tap) * Expr(static_cast<int64_t>(n)) + Expr(static_cast<int64_t>(i))));
        const Expr begin = at(positions[i]) * Expr(strides[i]) + at(of_taps[i]) * Expr(dilations[i]) - Expr(pads[i]);
        Coordinate k{x.axes[i + 2].extent, {}};
        k.position = Tile(&c.f, drawn_in(cast(moved.type(), begin) + moved, k, Beyond::zeros), {});
        coordinates.push_back(k);
    }
    const std::vector<Tile> parts = shares(c, x, {at(N), channel}, coordinates, Interpolation::linear, Beyond::zeros, axes);
    Expr value = sum_of(parts).value();
    if (c.has(4)) value = value * of_points(c.in(4), of_offset * Expr(taps) + tap);
    const Tile picture = stage_over(c, value, axes, "sampled");
    std::vector<Expr> at_w = {at(G) * Expr(each) + at(O), at(C)};
    std::vector<Axis> of_w;
    for (const Axis &t : of_taps) at_w.push_back(at(t));
    for (const auto &part : {of_taps, {G, C, O}})
        for (const Axis &a : part)
            if (!a.dim.empty()) of_w.push_back(a);
    const Tile kernel = Context::in_order(c.read(w, at_w, of_w), of_w);
    std::vector<Dim> over;
    for (const Axis &t : of_taps)
        if (!t.dim.empty()) over.push_back(c.dim(t));
    if (!C.dim.empty()) over.push_back(c.dim(C));
    const Tile acc = over.empty() ? (picture * kernel).named("acc") : dot(picture, kernel, over).named("acc");
    // (N, positions…, G, O) is (N, positions…, outputs).
    const Axis all = c.new_axis(Expr(outputs), taken);
    std::map<std::string, Expr> split;
    if (!G.dim.empty()) split[G.dim] = at(all) / Expr(each);
    if (!O.dim.empty()) split[O.dim] = group > 1 ? at(all) % Expr(each) : at(all);
    std::vector<std::string> dims = {N.dim};
    for (const Axis &p : positions) dims.push_back(p.dim);
    dims.push_back(all.dim);
    std::vector<Axis> result = {N, all};
    result.insert(result.end(), positions.begin(), positions.end());
    Value y = c.result(Tile(&c.f, substitute(acc.value(), split), dims), result, x.dtype);
    if (!c.has(3)) return {y};
    return c.element_wise({y, c.by_channel(c.in(3), y.axes.size())}, y.dtype, [](const std::vector<Tile> &t) { return t[0] + t[1]; });
}

}  // namespace

std::vector<Operator> grid_operators() {
    return {
        {"GridSample", grid_sample},
        {"AffineGrid", affine_grid},
        {"RoiAlign", roi_align},
        {"DeformConv", deformed_convolution},
    };
}

}  // namespace tessera::onnx

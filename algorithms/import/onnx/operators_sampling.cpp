// Operators that read between elements, or spread them: Resize and ConvTranspose.
#include <algorithm>
#include <cmath>

#include "algorithms/build/resize.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"
#include "algorithms/import/onnx/products.h"

namespace tessera::onnx {

namespace {

using Tap = ResizeTap;

// All that one output element of an axis is made of; with `over` the taps are one, along that axis.
struct Taps {
    std::vector<Tap> taps;
    std::optional<Axis> over;
    std::optional<Tile> beyond;  // where the element lies outside of the input and is another number
};

struct ResizeRule {
    std::string mode, coordinates, nearest;
    double cubic = -0.75;
    bool excludes_outside = false, filters = false;
    double begin = 0, end = 1;  // of the part that a crop resizes, in axis lengths
};

// Where output element i lies in the input.
double coordinate(const ResizeRule &rule, int64_t i, int64_t in, int64_t out, double scale) {
    const auto x = static_cast<double>(i);
    if (rule.coordinates == "asymmetric") return x / scale;
    // The length is that before it is rounded to whole elements, as ONNX has it.
    if (rule.coordinates == "align_corners") return out == 1 ? 0 : x * static_cast<double>(in - 1) / (scale * static_cast<double>(in) - 1);
    if (rule.coordinates == "pytorch_half_pixel" && out <= 1) return 0;
    if (rule.coordinates == "tf_crop_and_resize") {
        const double length = static_cast<double>(in - 1), exact = scale * static_cast<double>(in);
        return rule.begin * length +
               (exact == 1 ? (rule.end - rule.begin) * length / 2 : x * (rule.end - rule.begin) * length / (exact - 1));
    }
    if (rule.coordinates == "half_pixel_symmetric") {
        const double exact = scale * static_cast<double>(in), center = static_cast<double>(in) / 2;
        return center * (1 - static_cast<double>(out) / exact) + (x + 0.5) / scale - 0.5;
    }
    return (x + 0.5) / scale - 0.5;
}

double rounded(const std::string &how, double x) {
    if (how == "floor") return std::floor(x);
    if (how == "ceil") return std::ceil(x);
    if (how == "round_prefer_ceil") return std::floor(x + 0.5);
    return std::ceil(x - 0.5);
}

double cubic_weight(double a, double x) {
    x = std::abs(x);
    if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

// For an axis whose extents are known: tables of positions and weights. Where it shrinks and filters, the weights reach as much further.
Taps tabled(Context &c, const ResizeRule &rule, const std::vector<Axis> &axes, size_t axis, int64_t in, int64_t count, double scale,
            DType type) {
    const bool nearest = rule.mode == "nearest";
    const int reach = rule.mode == "linear" ? 1 : 2;
    const double narrow = rule.filters && !nearest ? std::min(scale, 1.0) : 1;
    const double below = std::floor(-reach / narrow) + 1;  // the first tap, from the one at or before the coordinate
    if (!(narrow > 0) || -below > static_cast<double>(2 * in + 4))
        c.refuse("it shrinks an axis of " + std::to_string(in) + " elements by " + std::to_string(scale) + ".", "Shrink it less.");
    const auto taps = static_cast<size_t>(nearest ? 1 : 2 - 2 * static_cast<int64_t>(below));
    std::vector<std::vector<double>> positions(taps), weights(taps);
    std::vector<double> outside;
    for (int64_t i = 0; i < count; i++) {
        const double x = coordinate(rule, i, in, count, scale), last = static_cast<double>(in - 1);
        double sum = 0;
        for (size_t k = 0; k < taps; k++) {
            const double p = (nearest ? rounded(rule.nearest, x) : std::floor(x) + below) + static_cast<double>(k);
            const double distance = narrow * (x - p);
            double w = nearest ? 1 : reach == 1 ? std::max(1 - std::abs(distance), 0.0) : cubic_weight(rule.cubic, distance);
            if (rule.excludes_outside && (p < 0 || p > last)) w = 0;
            positions[k].push_back(std::clamp(p, 0.0, last));
            weights[k].push_back(w);
            sum += w;
        }
        if ((rule.excludes_outside || narrow < 1) && sum != 0)
            for (auto &w : weights) w.back() /= sum;
        outside.push_back(x < 0 || x > last ? 1 : 0);
    }
    const Dim d = c.dim(axes[axis]);
    Taps made;
    auto positions_at = [&](const Tile &p) { return bounded(p.value(), Expr(0), Expr(in)); };
    if (narrow < 1) {
        made.over = c.new_axis(Expr(static_cast<int64_t>(taps)), axes);
        auto joined = [](const std::vector<std::vector<double>> &parts) {
            std::vector<double> all;
            for (const auto &part : parts) all.insert(all.end(), part.begin(), part.end());
            return all;
        };
        const std::vector<Dim> dims = {c.dim(*made.over), d};
        const Tile p = c.f.constant(c.space.fresh("positions"), dims, joined(positions), DType::i32);
        made.taps.push_back({positions_at(p), c.f.constant(c.space.fresh("weights"), dims, joined(weights), type)});
    }
    for (size_t k = 0; k < taps && !made.over; k++) {
        const Tile p = c.f.constant(c.space.fresh("positions"), {d}, positions[k], DType::i32);
        Tap tap{positions_at(p), {}};
        if (!nearest) tap.weight = c.f.constant(c.space.fresh("weights"), {d}, weights[k], type);
        made.taps.push_back(std::move(tap));
    }
    if (rule.coordinates == "tf_crop_and_resize" && std::count(outside.begin(), outside.end(), 1.0))
        made.beyond = c.f.constant(c.space.fresh("outside"), {d}, outside, DType::i32) != 0.0;
    return made;
}

// Whether `grown` knows the rule.
bool grows(const ResizeRule &rule) {
    const bool asymmetric = rule.coordinates == "asymmetric";
    return (asymmetric || rule.coordinates.starts_with("half_pixel")) && rule.mode != "cubic" && !rule.filters && !rule.excludes_outside &&
           !(rule.mode == "nearest" && asymmetric && rule.nearest != "floor");
}

// For extents of any kind whose quotient is the scale.
std::vector<Tap> between(Context &c, const ResizeRule &rule, const Axis &in, const Axis &out) {
    Resize how;
    how.cubic = rule.cubic;
    if (rule.mode != "linear") how.by = rule.mode == "cubic" ? Interpolation::cubic : Interpolation::nearest;
    if (rule.coordinates == "asymmetric") how.coordinates = Coordinates::asymmetric;
    else if (rule.coordinates == "align_corners") how.coordinates = Coordinates::align_corners;
    if (rule.nearest == "floor") how.nearest = Nearest::floor;
    else if (rule.nearest != "round_prefer_floor") how.nearest = rule.nearest == "ceil" ? Nearest::ceil : Nearest::half_up;
    const bool sayable = how.coordinates != Coordinates::half_pixel || rule.coordinates.starts_with("half_pixel");
    if (!sayable || rule.filters || rule.excludes_outside)
        c.refuse("it resizes an axis of unknown extent by mode '" + rule.mode + "' and coordinates '" + rule.coordinates + "'" +
                     (rule.filters ? ", with antialias" : rule.excludes_outside ? ", without what is outside" : "") + ".",
                 "Fix the axis' extent (--shape).");
    return resize_taps(c.f, c.dim(in), c.dim(out), how);
}

// For an axis of any extent that grows by a whole number.
std::vector<Tap> grown(Context &c, const ResizeRule &rule, const Axis &out, const Expr &in, int64_t s, DType type) {
    const Expr i = at(out);
    const bool asymmetric = rule.coordinates == "asymmetric";
    const bool half = rule.coordinates == "half_pixel" || rule.coordinates == "half_pixel_symmetric";
    // With half pixels element i lies at (2 i + 1 - s) / 2 s, whose nearest is i / s however halves are rounded.
    if (rule.mode == "nearest") {
        if (half && rule.nearest == "floor") return {{max((i * Expr(2) + Expr(1 - s)) / Expr(2 * s), Expr(0)), {}}};
        if (half && rule.nearest == "ceil") return {{min((i * Expr(2) + Expr(s)) / Expr(2 * s), in - 1), {}}};
        return {{i / Expr(s), {}}};
    }
    const Expr above = asymmetric ? i : i * Expr(2) + Expr(1 - s), below = Expr(asymmetric ? s : 2 * s);
    const Expr first = above / below;
    const Expr rest = above - first * below;
    const Tile share(&c.f, cast(type, rest) * constant(type, 1.0 / static_cast<double>(asymmetric ? s : 2 * s)), {out.dim});
    return {{max(first, Expr(0)), 1.0 - share}, {min(first + 1, in - 1), share}};
}

std::vector<Value> resize(Context &c) {
    const Value &x = c.in(0);
    ResizeRule rule;
    rule.mode = c.node.text("mode", "nearest");
    rule.coordinates = c.node.text("coordinate_transformation_mode", c.opset < 11 ? "asymmetric" : "half_pixel");
    rule.nearest = c.opset < 11 ? "floor" : c.node.text("nearest_mode", "round_prefer_floor");
    rule.cubic = c.node.real("cubic_coeff_a", -0.75);
    rule.excludes_outside = c.node.integer("exclude_outside", 0) != 0;
    rule.filters = c.node.integer("antialias", 0) != 0;
    const bool crops = rule.coordinates == "tf_crop_and_resize";
    const bool old = c.opset < 11 || c.node.op == "Upsample";
    std::vector<int64_t> axes = c.node.integers("axes");
    if (axes.empty())
        for (int64_t i = 0; i < x.rank(); i++) axes.push_back(i);
    axes = c.axes(axes, x.rank());
    std::vector<double> part;  // where the crop begins on each axis, then where it ends
    if (crops) {
        part = c.reals(1, "roi");
        if (part.size() != 2 * axes.size())
            c.refuse("its roi has " + std::to_string(part.size()) + " elements for " + std::to_string(axes.size()) + " axes.",
                     "Check the exporter.");
    }
    std::vector<double> scales;
    if (c.has(old ? 1 : 2)) scales = c.reals(old ? 1 : 2, "scales");
    if (const Attribute *a = c.node.find("scales"); a && scales.empty()) scales.assign(a->reals.begin(), a->reals.end());
    std::vector<Expr> sizes;
    if (scales.empty() && !old && c.has(3)) sizes = c.integers(3, "sizes");
    if (scales.size() != axes.size() && sizes.size() != axes.size())
        c.refuse("it says neither scales nor sizes for its " + std::to_string(axes.size()) + " axes.", "Check the exporter.");
    const std::string policy = c.node.text("keep_aspect_ratio_policy", "stretch");
    if (!sizes.empty() && policy != "stretch") {
        double scale = policy == "not_larger" ? INFINITY : 0;
        for (size_t i = 0; i < axes.size(); i++) {
            const double one = static_cast<double>(c.fixed({sizes[i], ""}, "a size")) /
                               static_cast<double>(c.fixed(x.axes[static_cast<size_t>(axes[i])], "an axis that is resized"));
            scale = policy == "not_larger" ? std::min(scale, one) : std::max(scale, one);
        }
        scales.assign(axes.size(), scale);
        for (size_t i = 0; i < axes.size(); i++)
            sizes[i] = Expr(
                static_cast<int64_t>(std::lround(scale * static_cast<double>(c.fixed(x.axes[static_cast<size_t>(axes[i])], "an axis")))));
    }
    Value value = x;
    if (x.is_constant() || x.is_known()) {  // whose axes have no dims
        std::vector<Axis> own;
        const Tile tile = c.spread(x, own);
        value = c.result(tile, own, x.dtype);
    }
    bool sampled = false;
    for (size_t k = 0; k < axes.size(); k++) {
        const auto axis = static_cast<size_t>(axes[k]);
        const Expr in = x.axes[axis].extent;
        Expr out;
        std::optional<int64_t> whole;
        if (crops) rule.begin = part[k], rule.end = part[k + axes.size()];
        const bool is_whole = !crops || (rule.begin == 0 && rule.end == 1);
        if (!sizes.empty()) {
            out = c.space.simplified(sizes[k]);
            if (is_whole && c.space.same(out, in)) continue;
            for (int64_t s = 2; s <= 16 && !whole; s++)
                if (c.space.simplified(out - in * Expr(s)).is_constant(0)) whole = s;
        } else {
            if (is_whole && scales[k] == 1) continue;
            if (scales[k] == std::floor(scales[k]) && scales[k] >= 1) whole = static_cast<int64_t>(scales[k]), out = in * Expr(*whole);
        }
        const std::optional<int64_t> fixed_in = c.space.number(in);
        if (sizes.empty() && !whole) {
            const auto count =
                static_cast<int64_t>(std::floor(scales[k] * static_cast<double>(c.fixed(x.axes[axis], "an axis that is resized"))));
            out = Expr(count);
        }
        std::vector<Axis> result = value.axes;
        result[axis] = {out, ""};
        std::vector<Axis> others;
        for (size_t i = 0; i < result.size(); i++)
            if (i != axis) others.push_back(result[i]);
        result[axis] = c.new_axis(out, others);
        std::vector<Expr> index;
        for (size_t i = 0; i < result.size(); i++) index.push_back(i == axis ? Expr(0) : at(value.axes[i]));
        const DType type = computed_as(x.dtype);
        const bool floats = is_float(type);
        const DType weighs = floats ? type : DType::f32;
        Taps made;
        if (fixed_in && c.space.number(out)) {
            const int64_t n = c.fixed({in, ""}, "an extent"), m = c.fixed({out, ""}, "an extent");
            const double scale = scales.empty() ? static_cast<double>(m) / static_cast<double>(n) : scales[k];
            made = tabled(c, rule, result, axis, n, m, scale, weighs);
        } else if (whole && grows(rule)) {
            made.taps = grown(c, rule, result[axis], in, *whole, weighs);
        } else {
            made.taps = between(c, rule, value.axes[axis], result[axis]);
        }
        const std::vector<Tap> &taps = made.taps;
        if (sampled && (taps.size() == 4 || made.over)) value = c.kept(value);
        std::vector<Axis> with_taps = result;
        if (made.over) with_taps.push_back(*made.over);
        std::optional<Tile> sum;
        for (const Tap &tap : taps) {
            index[axis] = tap.position;
            Tile read = c.read(value, index, with_taps);
            if (tap.weight) {
                if (!floats) read = cast(weighs, read);
                read = Context::ordered(read * *tap.weight, {read});
            }
            sum = sum ? *sum + read : read;
        }
        if (made.over) sum = c.f.fold(sum_monoid(weighs), {*sum}, {made.over->dim})[0];
        if (!floats && (taps.size() > 1 || made.over)) sum = cast(type, round(*sum));
        if (made.beyond) {
            const double extrapolated = c.node.real("extrapolation_value", 0);
            const Tile outside(&c.f, floats ? constant(type, extrapolated) : constant_int(type, static_cast<int64_t>(extrapolated)), {});
            sum = Context::ordered(select(*made.beyond, outside, *sum), {*sum});
        }
        value = c.result(*sum, result, x.dtype);
        sampled = true;
    }
    return {value};
}

// Each element adds its products with the kernel to the positions that its window covers, stride apart (Zeiler et al. 2010). Position p
// sums the taps that reach it: t = (p + pad) % stride + stride j, of element (p + pad) / stride - j.
std::vector<Value> transposed_convolution(Context &c) {
    const Value &x = c.in(0), &w = c.in(1);
    const size_t n = x.axes.size() - 2;
    const int64_t group = c.node.integer("group", 1);
    const std::vector<int64_t> strides = c.node.integers("strides", std::vector<int64_t>(n, 1)),
                               dilations = c.node.integers("dilations", std::vector<int64_t>(n, 1)),
                               added = c.node.integers("output_padding", std::vector<int64_t>(n, 0)),
                               shape = c.node.integers("output_shape");
    std::vector<int64_t> pads = c.node.integers("pads", std::vector<int64_t>(2 * n, 0));
    const std::string automatic = c.node.text("auto_pad", "NOTSET");
    if (w.rank() != x.rank() || (!shape.empty() && shape.size() != n) || strides.size() != n || dilations.size() != n ||
        added.size() != n || pads.size() != 2 * n)
        c.refuse("its kernel, strides, dilations and pads do not fit its " + std::to_string(n) + " axes of pixels.", "Check the exporter.");
    if (std::any_of(strides.begin(), strides.end(), [](int64_t s) { return s < 1; }) ||
        std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d < 1; }) || group < 1)
        c.refuse("a stride, dilation or group below 1.", "Check the exporter.");
    std::vector<Axis> taken;
    auto add = [&](const Expr &extent) {
        taken.push_back(c.new_axis(extent, taken));
        return taken.back();
    };
    const Axis N = add(x.axes[0].extent);
    std::vector<Axis> positions, steps;
    Expr inside;
    std::vector<Expr> element, tap;
    for (size_t i = 0; i < n; i++) {
        const Axis &in = x.axes[i + 2];
        const int64_t k = c.fixed(w.axes[i + 2], "the size of its kernel"), s = strides[i], d = dilations[i], reach = d * (k - 1) + 1;
        Expr out = (in.extent - 1) * Expr(s) + Expr(added[i] + reach);
        if (!shape.empty() || automatic.starts_with("SAME")) {
            const Expr wanted = shape.empty() ? in.extent * Expr(s) : Expr(shape[i]);
            const int64_t all = std::max<int64_t>(c.fixed({out - wanted, ""}, "its padding"), 0);
            pads[i] = automatic == "SAME_UPPER" ? all / 2 : all - all / 2;
            pads[i + n] = all - pads[i];
            out = wanted;
        } else {
            out = out - Expr(pads[i] + pads[i + n]);
        }
        positions.push_back(add(c.space.simplified(max(out, Expr(0)))));
        const Expr p = at(positions[i]) + Expr(pads[i]);
        Expr here;
        if (d == 1) {
            const int64_t count = (k + s - 1) / s;
            steps.push_back(count == 1 ? Axis{Expr(1), ""} : add(Expr(count)));
            const Expr t = p % Expr(s) + at(steps[i]) * Expr(s);
            element.push_back(p / Expr(s) - at(steps[i]));
            tap.push_back(k % s ? min(t, Expr(k - 1)) : t);
            here = Expr(0) <= element[i] && element[i] < in.extent;
            if (k % s) here = here && t < Expr(k);
        } else {
            steps.push_back(k == 1 ? Axis{Expr(1), ""} : add(Expr(k)));
            const Expr reached = p - at(steps[i]) * Expr(d);
            element.push_back(reached / Expr(s));
            tap.push_back(at(steps[i]));
            here = Expr(0) <= reached && element[i] < in.extent;
            if (s > 1) here = here && reached % Expr(s) == Expr(0);
        }
        inside = inside.defined() ? inside && here : here;
    }
    const Expr all = w.axes[1].extent;
    const bool grouped = group > 1;
    const int64_t inner = grouped ? c.fixed(w.axes[0], "its number of channels") / group : 0;
    const std::optional<Axis> G = grouped ? std::optional(add(Expr(group))) : std::nullopt;
    const Axis C = grouped && inner == 1 ? Axis{Expr(1), ""} : add(grouped ? Expr(inner) : w.axes[0].extent);
    if (!grouped && !c.space.same(x.axes[1].extent, w.axes[0].extent))
        c.refuse("its input has other channels than its kernel.", "Check the exporter.", "onnx.broadcast");
    const Axis O = grouped && all.is_constant(1) ? Axis{Expr(1), ""} : add(all);
    const Expr channel = G ? at(*G) * Expr(inner) + at(C) : at(C);
    std::vector<Axis> of_x = {N}, of_w;
    of_x.insert(of_x.end(), positions.begin(), positions.end());
    of_w = positions;
    of_x.insert(of_x.end(), steps.begin(), steps.end());
    of_w.insert(of_w.end(), steps.begin(), steps.end());
    if (G) of_x.push_back(*G), of_w.push_back(*G);
    of_x.push_back(C), of_w.push_back(C), of_w.push_back(O);
    std::vector<Expr> at_x = {at(N), channel}, at_w = {channel, at(O)};
    at_x.insert(at_x.end(), element.begin(), element.end());
    at_w.insert(at_w.end(), tap.begin(), tap.end());
    std::vector<int64_t> order;
    for (size_t i = 0; i < n; i++) order.push_back(static_cast<int64_t>(i + 2));
    order.push_back(0), order.push_back(1);
    c.tile_in_order(w, order);
    const Tile read = c.read(x, at_x, of_x);
    const Tile picture = Context::in_order(
        Tile(&c.f, c.space.resolved(select(inside, read_where(read.value(), inside), constant(read.dtype(), 0))), read.dims()), of_x);
    const Tile kernel = Context::in_order(c.read(w, at_w, of_w), of_w);
    std::vector<Dim> over;
    for (const Axis &a : steps)
        if (!a.dim.empty()) over.push_back(c.dim(a));
    if (!C.dim.empty()) over.push_back(c.dim(C));
    Tile acc = over.empty() ? (picture * kernel).named("acc") : dot(picture, kernel, over).named("acc");
    std::vector<Axis> result = {N};
    if (!grouped) {
        result.push_back(O);
    } else {
        const Axis channels = c.new_axis(all * Expr(group), taken);
        std::map<std::string, Expr> split = {{G->dim, at(channels) / all}};
        if (!O.dim.empty()) split[O.dim] = at(channels) % all;
        std::vector<std::string> dims = {N.dim};
        for (const Axis &p : positions) dims.push_back(p.dim);
        dims.push_back(channels.dim);
        acc = Tile(&c.f, substitute(acc.value(), split), dims);
        result.push_back(channels);
    }
    result.insert(result.end(), positions.begin(), positions.end());
    return {with_bias(c, c.result(acc, result, x.dtype), 2)};
}

}  // namespace

std::vector<Operator> sampling_operators() { return {{"Resize", resize}, {"Upsample", resize}, {"ConvTranspose", transposed_convolution}}; }

}  // namespace tessera::onnx

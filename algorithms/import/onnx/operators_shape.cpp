// Operators that move elements and compute none: views, joins, slices, and what makes tensors of nothing.
#include <algorithm>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/import/onnx/operators.h"

namespace tessera::onnx {

namespace {

std::vector<Expr> variables(const std::vector<Axis> &axes) {
    std::vector<Expr> at;
    for (const Axis &a : axes) at.push_back(a.dim.empty() ? Expr(0) : variable(a.dim));
    return at;
}

Expr product(const std::vector<Expr> &factors) {
    Expr all = 1;
    for (const Expr &f : factors) all = all * f;
    return all;
}

std::vector<Value> shape_handler(Context &c) {
    const Value &x = c.in(0);
    int64_t begin = c.node.integer("start", 0), end = c.node.integer("end", x.rank());
    auto within = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + x.rank() : v, 0, x.rank()); };
    begin = within(begin), end = within(end);
    std::vector<Expr> extents;
    for (int64_t i = begin; i < end; i++) extents.push_back(x.axes[static_cast<size_t>(i)].extent);
    const auto count = static_cast<int64_t>(extents.size());
    return {c.integers_value(extents, {count})};
}

std::vector<Value> size_handler(Context &c) {
    Expr all = 1;
    for (const Axis &a : c.in(0).axes) all = all * a.extent;
    return {c.integers_value({all}, {})};
}

}  // namespace

// Where extents of both go together the index is taken apart there alone, so that a reshape that splits one axis divides nothing else.
Value reshaped(Context &c, const Value &x, const std::vector<Expr> &extents) {
    std::vector<Expr> from;
    for (const Axis &a : x.axes) from.push_back(c.space.simplified(a.extent));
    std::vector<Axis> axes = c.new_axes(extents);
    const std::vector<Expr> to = variables(axes);
    std::vector<Expr> at(from.size(), Expr(0));
    size_t i = 0, j = 0;
    while (i < from.size() || j < extents.size()) {
        if (i < from.size() && from[i].is_constant(1)) {
            i++;
            continue;
        }
        if (j < extents.size() && c.space.simplified(extents[j]).is_constant(1)) {
            j++;
            continue;
        }
        // The smallest groups of equal products.
        const size_t first_i = i, first_j = j;
        Expr left = i < from.size() ? from[i++] : Expr(1), right = j < extents.size() ? extents[j++] : Expr(1);
        while (!c.space.same(left, right)) {
            const Expr l = c.space.simplified(left), r = c.space.simplified(right);
            const bool grows_left = l.is_constant() && r.is_constant() ? l->value.integer < r->value.integer : i - first_i <= j - first_j;
            if (grows_left && i < from.size()) left = left * from[i++];
            else if (j < extents.size()) right = right * extents[j++];
            else if (i < from.size()) left = left * from[i++];
            else
                c.refuse("it reshapes " + brief(l) + " elements to " + brief(r) + ", which are not known to be as many.",
                         "Fix the dims that they depend on (--shape).", "onnx.reshape");
        }
        Expr linear = 0;
        for (size_t k = first_j; k < j; k++) linear = linear * extents[k] + to[k];
        Expr below = 1;
        for (size_t k = i; k-- > first_i;) {
            Expr index = k + 1 == i && i - first_i == 1 ? linear : linear / below;
            if (k > first_i) index = index % from[k];
            at[k] = c.space.simplified(i - first_i == 1 ? linear : index);
            below = below * from[k];
        }
    }
    const Tile tile = c.read(x, at, axes);
    return c.result(tile, axes, x.dtype);
}

namespace {

// Without the factors that both have.
Expr quotient(Context &c, std::vector<Expr> above, std::vector<Expr> below) {
    for (auto a = above.begin(); a != above.end();) {
        auto b = std::find_if(below.begin(), below.end(), [&](const Expr &e) { return c.space.same(*a, e); });
        if (b == below.end()) {
            ++a;
            continue;
        }
        a = above.erase(a);
        below.erase(b);
    }
    const Expr divisor = c.space.simplified(product(below));
    if (divisor.is_constant(0)) return 0;
    return c.space.simplified(divisor.is_constant(1) ? product(above) : product(above) / divisor);
}

std::vector<Value> reshape(Context &c) {
    const Value &x = c.in(0);
    std::vector<Expr> wanted;
    if (c.has(1)) wanted = c.integers(1, "shape");
    else
        for (int64_t n : c.node.integers("shape")) wanted.push_back(Expr(n));
    const bool zero_stays = c.node.integer("allowzero", 0) != 0;
    std::vector<Expr> all, others;
    for (const Axis &a : x.axes) all.push_back(a.extent);
    std::optional<size_t> open;
    for (size_t i = 0; i < wanted.size(); i++) {
        Expr &w = wanted[i];
        w = c.space.simplified(w);
        if (w.is_constant(0) && !zero_stays && i < all.size()) w = all[i];
        if (w.is_constant(-1)) open = i;
        else others.push_back(w);
    }
    if (open) wanted[*open] = quotient(c, all, others);
    return {reshaped(c, x, wanted)};
}

std::vector<Value> flatten(Context &c) {
    const Value &x = c.in(0);
    int64_t axis = c.node.integer("axis", 1);
    if (axis < 0) axis += x.rank();
    std::vector<Expr> before, after;
    for (int64_t i = 0; i < x.rank(); i++) (i < axis ? before : after).push_back(x.axes[static_cast<size_t>(i)].extent);
    return {reshaped(c, x, {product(before), product(after)})};
}

std::vector<Value> squeeze(Context &c) {
    const Value &x = c.in(0);
    const std::vector<int64_t> named = c.axes(c.numbers("axes", 1), x.rank());
    std::vector<Axis> axes;
    std::vector<std::string> gone;
    for (int64_t i = 0; i < x.rank(); i++) {
        const Axis &a = x.axes[static_cast<size_t>(i)];
        const bool is_named = std::find(named.begin(), named.end(), i) != named.end();
        const bool goes = named.empty() && !c.has(1) && !c.node.find("axes") ? a.extent.is_constant(1) : is_named;
        if (goes && !c.space.same(a.extent, Expr(1)))
            c.refuse("it takes axis " + std::to_string(i) + " away, which has " + brief(a.extent) + " elements.",
                     "Fix its dim to 1 (--shape).", "onnx.squeeze");
        if (!goes) axes.push_back(a);
        else if (!a.dim.empty()) gone.push_back(a.dim);
    }
    Value made = c.with_axes(x, axes);
    if (!gone.empty()) {
        std::map<std::string, Expr> zero;
        std::vector<std::string> dims;
        for (const std::string &d : gone) zero[d] = Expr(0);
        for (const std::string &d : made.tile.dims())
            if (!zero.count(d)) dims.push_back(d);
        made.tile = Tile(&c.f, substitute(made.tile.value(), zero), dims);
    }
    return {made};
}

std::vector<Value> unsqueeze(Context &c) {
    const Value &x = c.in(0);
    std::vector<int64_t> named = c.numbers("axes", 1);
    const int64_t rank = x.rank() + static_cast<int64_t>(named.size());
    named = c.axes(named, rank);
    std::vector<Axis> axes;
    size_t next = 0;
    for (int64_t i = 0; i < rank; i++) {
        if (std::find(named.begin(), named.end(), i) != named.end()) axes.push_back({Expr(1), ""});
        else axes.push_back(x.axes.at(next++));
    }
    return {c.with_axes(x, axes)};
}

std::vector<Value> transpose_handler(Context &c) {
    const Value &x = c.in(0);
    std::vector<int64_t> order = c.node.integers("perm");
    if (order.empty())
        for (int64_t i = x.rank(); i-- > 0;) order.push_back(i);
    if (static_cast<int64_t>(order.size()) != x.rank())
        c.refuse("its perm has " + std::to_string(order.size()) + " axes, the input " + std::to_string(x.rank()) + ".",
                 "Check the exporter.");
    Value made = x;
    if (x.is_constant() || x.is_known()) {
        std::vector<Axis> axes;
        const Tile t = c.spread(x, axes);
        made = c.result(t, axes, x.dtype);
    }
    std::vector<Axis> axes;
    for (int64_t o : order) axes.push_back(made.axes.at(static_cast<size_t>(c.axis(o, x.rank()))));
    made.axes = axes;
    return {made};
}

std::vector<Value> concat(Context &c) {
    std::vector<Value> parts;
    for (size_t i = 0; i < c.inputs(); i++) parts.push_back(c.in(i));
    const int64_t axis = c.axis(c.node.integer("axis", 1), parts.at(0).rank());
    return {c.concatenated(parts, static_cast<size_t>(axis))};
}

// Elements begin, begin + step, … of an axis.
struct Cut {
    size_t axis;
    Expr begin, count;
    int64_t step = 1;
};

Value sliced(Context &c, const Value &x, const std::vector<Cut> &cuts) {
    std::vector<Axis> axes = x.axes;
    if (x.is_constant() || x.is_known()) {
        std::vector<Axis> own;
        c.spread(x, own);
        axes = own;
    }
    std::vector<Expr> extents;
    for (const Axis &a : axes) extents.push_back(a.extent);
    for (const Cut &cut : cuts) extents[cut.axis] = cut.count;
    const std::vector<Axis> result = c.new_axes(extents);
    std::vector<Expr> index = variables(result);
    for (const Cut &cut : cuts)
        index[cut.axis] =
            c.space.simplified(cut.begin + (result[cut.axis].dim.empty() ? Expr(0) : variable(result[cut.axis].dim)) * Expr(cut.step));
    return c.result(c.read(x, index, result), result, x.dtype);
}

std::vector<Value> slice(Context &c) {
    const Value &x = c.in(0);
    auto list = [&](const char *name, size_t input) {
        if (c.has(input)) return c.integers(input, name);
        std::vector<Expr> all;
        for (int64_t n : c.node.integers(name)) all.push_back(Expr(n));
        return all;
    };
    const std::vector<Expr> starts = list("starts", 1), ends = list("ends", 2);
    std::vector<int64_t> axes = c.numbers("axes", 3), steps = c.has(4) ? c.numbers(4, "steps") : std::vector<int64_t>();
    if (axes.empty())
        for (size_t i = 0; i < starts.size(); i++) axes.push_back(static_cast<int64_t>(i));
    axes = c.axes(axes, x.rank());
    steps.resize(axes.size(), 1);
    std::vector<Cut> cuts;
    for (size_t i = 0; i < axes.size(); i++) {
        const auto axis = static_cast<size_t>(axes[i]);
        const Expr n = x.axes[axis].extent;
        const int64_t step = steps[i];
        if (step == 0) c.refuse("its step is 0.", "Check the exporter.");
        auto clamped = [&](const Expr &wanted, bool is_end) {
            const Expr w = c.space.simplified(wanted);
            const bool back = step < 0;
            if (w.is_constant()) {
                const int64_t v = w->value.integer;
                if (v > INT32_MAX) return back ? n - 1 : n;
                if (v < -INT32_MAX) return back && is_end ? Expr(-1) : Expr(0);
            }
            const Expr from_end = select(w < Expr(0), w + n, w);
            return back ? max(min(from_end, n - 1), Expr(-1)) : max(min(from_end, n), Expr(0));
        };
        const Expr begin = c.space.simplified(clamped(starts[i], false)), end = c.space.simplified(clamped(ends[i], true));
        const Expr span = step > 0 ? end - begin + Expr(step - 1) : begin - end + Expr(-step - 1);
        const Expr count = c.space.simplified(max(span / Expr(step > 0 ? step : -step), Expr(0)));
        cuts.push_back({axis, begin, count, step});
    }
    return {sliced(c, x, cuts)};
}

std::vector<Value> split(Context &c) {
    const Value &x = c.in(0);
    const auto axis = static_cast<size_t>(c.axis(c.node.integer("axis", 0), x.rank()));
    std::vector<Expr> sizes;
    if (c.has(1)) sizes = c.integers(1, "split");
    for (int64_t n : c.node.integers("split")) sizes.push_back(Expr(n));
    const Expr n = x.axes[axis].extent;
    if (sizes.empty()) {
        const auto parts = static_cast<int64_t>(c.node.outputs.size());
        const int64_t said = c.node.integer("num_outputs", parts);
        if (parts < 1 || said != parts)
            c.refuse("its num_outputs is " + std::to_string(said) + ", and it has " + std::to_string(parts) + " outputs.",
                     "Check the exporter.");
        const Expr each = (n + Expr(parts - 1)) / Expr(parts);
        for (int64_t i = 0; i < parts; i++) sizes.push_back(i + 1 < parts ? each : n - each * Expr(parts - 1));
    }
    std::vector<Value> results;
    Expr begin = 0;
    for (const Expr &size : sizes) {
        results.push_back(sliced(c, x, {{axis, c.space.simplified(begin), c.space.simplified(size), 1}}));
        begin = begin + size;
    }
    return results;
}

Value broadcast_to(Context &c, const Value &x, const std::vector<Expr> &wanted) {
    std::vector<Axis> own;
    if (x.is_constant() || x.is_known()) {
        c.spread(x, own);
        for (Axis &a : own)
            if (a.extent.is_constant(1)) a.dim.clear();
    } else {
        own = x.axes;
    }
    const size_t rank = std::max(own.size(), wanted.size());
    std::vector<Axis> axes;
    for (size_t i = 0; i < rank; i++) {
        const bool has_own = i + own.size() >= rank, has_wanted = i + wanted.size() >= rank;
        const Expr w = has_wanted ? c.space.simplified(wanted[i + wanted.size() - rank]) : Expr(1);
        const Axis a = has_own ? own[i + own.size() - rank] : Axis{Expr(1), ""};
        if (a.extent.is_constant(1) && !w.is_constant(1)) axes.push_back({w, ""});
        else if (w.is_constant(1) || c.space.same(w, a.extent)) axes.push_back(a);
        else
            c.refuse("it expands an axis of " + brief(a.extent) + " elements to " + brief(w) + ".", Context::equal_extents,
                     "onnx.broadcast");
    }
    // An axis of one element that the tile has a dim of is read at 0.
    std::map<std::string, Expr> zero;
    const Tile t = c.tile(x);
    for (size_t i = 0; i < own.size(); i++)
        if (!own[i].dim.empty() && own[i].extent.is_constant(1)) zero[own[i].dim] = Expr(0);
    std::vector<std::string> dims;
    for (const std::string &d : t.dims())
        if (!zero.count(d)) dims.push_back(d);
    return c.result(Tile(&c.f, substitute(t.value(), zero), dims), axes, x.dtype);
}

std::vector<Value> expand(Context &c) { return {broadcast_to(c, c.in(0), c.integers(1, "shape"))}; }

std::vector<Value> tile_handler(Context &c) {
    const Value &x = c.in(0);
    const std::vector<Expr> times = c.integers(1, "repeats");
    if (times.size() != x.axes.size())
        c.refuse("it has " + std::to_string(times.size()) + " repeats for " + std::to_string(x.axes.size()) + " axes.",
                 "Check the exporter.");
    for (const Expr &t : times)
        if (const std::optional<int64_t> n = c.space.number(t); n && (*n < 0 || *n > most_extent))
            c.refuse("it repeats an axis " + std::to_string(*n) + " times; expected 0 to 10^9.", "Check the exporter.", "onnx.extent");
    std::vector<Expr> extents;
    for (size_t i = 0; i < x.axes.size(); i++) extents.push_back(x.axes[i].extent * times.at(i));
    const std::vector<Axis> axes = c.new_axes(extents);
    std::vector<Expr> index = variables(axes);
    for (size_t i = 0; i < x.axes.size(); i++)
        if (!c.space.simplified(times[i]).is_constant(1)) index[i] = index[i] % x.axes[i].extent;
    return {c.result(c.read(x, index, axes), axes, x.dtype)};
}

std::vector<Value> constant_handler(Context &c) {
    if (const Attribute *a = c.node.find("value"); a && a->tensor) return {c.constant(elements(*a->tensor, c.model))};
    if (c.node.find("value_float")) return {c.constant(Array(DType::f32, {}, {c.node.real("value_float", 0)}))};
    if (c.node.find("value_int")) return {c.integers_value({Expr(c.node.integer("value_int"))}, {})};
    if (c.node.find("value_floats")) {
        const std::vector<double> v = c.node.reals("value_floats");
        return {c.constant(Array(DType::f32, {static_cast<int64_t>(v.size())}, v))};
    }
    if (c.node.find("value_ints")) {
        std::vector<Expr> v;
        for (int64_t i : c.node.integers("value_ints")) v.push_back(Expr(i));
        const auto count = static_cast<int64_t>(v.size());
        return {c.integers_value(v, {count})};
    }
    c.refuse("it is of a kind (sparse, strings) that Tessera does not have.", "Make it a dense tensor of numbers.", "onnx.type");
}

Array element_of(Context &c) {
    if (const Attribute *a = c.node.find("value"); a && a->tensor) return elements(*a->tensor, c.model);
    return Array(DType::f32, {1}, {0});
}

std::vector<Value> constant_of_shape(Context &c) {
    const std::vector<Expr> extents = c.integers(0, "shape");
    const Array element = element_of(c);
    Value one = c.constant(element);
    const Tile t = c.tile(one);
    std::vector<Axis> axes;
    for (const Expr &e : extents) axes.push_back({e, ""});
    return {c.result(t, axes, element.dtype)};
}

std::vector<Value> range(Context &c) {
    const Value &start = c.in(0);
    if (is_float(start.dtype)) {
        const double a = c.reals(0, "start").at(0), b = c.reals(1, "limit").at(0), d = c.reals(2, "delta").at(0);
        const double steps = std::ceil((b - a) / d);
        if (d == 0 || !std::isfinite(steps) || steps > static_cast<double>(most_extent))
            c.refuse("its start, limit and delta say no number of elements up to 10^9.", "Check the exporter.", "onnx.extent");
        const auto count = static_cast<int64_t>(std::max(steps, 0.0));
        std::vector<double> values;
        for (int64_t i = 0; i < std::min(count, most_known); i++) values.push_back(a + static_cast<double>(i) * d);
        if (count > most_known) c.refuse("it has " + std::to_string(count) + " elements.", "Give it as an initializer.");
        return {c.constant(Array(start.dtype, {count}, values))};
    }
    const Expr a = c.integers(0, "start").at(0), b = c.integers(1, "limit").at(0);
    const int64_t d = c.numbers(2, "delta").at(0);
    if (d == 0) c.refuse("its step is 0.", "Check the exporter.");
    const Expr span = d > 0 ? b - a + Expr(d - 1) : a - b + Expr(-d - 1);
    const std::vector<Axis> axes = c.new_axes({max(span / Expr(d > 0 ? d : -d), Expr(0))});
    const Expr value = a + variable(axes[0].dim) * Expr(d);
    return {c.result(Tile(&c.f, cast(computed_as(start.dtype), value), {axes[0].dim}), axes, start.dtype)};
}

std::vector<Value> eye_like(Context &c) {
    const Value &x = c.in(0);
    const auto number = static_cast<int32_t>(c.node.integer("dtype", type_number(x.dtype)));
    const std::optional<DType> type = dtype_of(number);
    if (!type) c.refuse("its type is " + type_name(number) + ".", "Choose another type.", "onnx.type");
    const std::vector<Axis> axes = c.new_axes({x.axes.at(0).extent, x.axes.at(1).extent});
    const Expr on = variable(axes[0].dim) + Expr(c.node.integer("k", 0)) == variable(axes[1].dim);
    const DType held = computed_as(*type);
    return {c.result(Tile(&c.f, cast(held, cast(DType::i32, on)), {axes[0].dim, axes[1].dim}), axes, *type)};
}

std::vector<Value> triangle(Context &c) {
    const Value &x = c.in(0);
    const bool upper = c.node.integer("upper", 1) != 0;
    const Expr k = c.has(1) ? c.integers(1, "k").at(0) : Expr(0);
    std::vector<Axis> axes;
    const Tile t = c.spread(x, axes);
    const Expr row = variable(axes[axes.size() - 2].dim), column = variable(axes.back().dim);
    const Expr stays = upper ? row + k <= column : column <= row + k;
    const Expr zero = is_float(t.dtype()) ? constant(t.dtype(), 0) : constant_int(t.dtype(), 0);
    return {c.result(Tile(&c.f, select(stays, t.value(), zero), t.dims()), axes, x.dtype)};
}

// Blocks of size x size pixels and channels, either way.
std::vector<Value> depth_space(Context &c) {
    const Value &x = c.in(0);
    const int64_t size = c.node.integer("blocksize");
    if (size < 1 || size > most_known)
        c.refuse("its blocksize is " + std::to_string(size) + "; expected 1 to " + std::to_string(most_known) + ".", "Check the exporter.");
    const bool to_space = c.node.op == "DepthToSpace", rows_first = c.node.text("mode", "DCR") == "DCR";
    const Expr n = x.axes.at(0).extent, depth = x.axes.at(1).extent, h = x.axes.at(2).extent, w = x.axes.at(3).extent, b(size);
    const std::vector<Axis> axes =
        to_space ? c.new_axes({n, depth / Expr(size * size), h * b, w * b}) : c.new_axes({n, depth * Expr(size * size), h / b, w / b});
    const std::vector<Expr> to = variables(axes);
    std::vector<Expr> at = to;
    if (to_space) {
        const Expr within = (to[2] % b) * b + to[3] % b;
        at[1] = rows_first ? within * axes[1].extent + to[1] : to[1] * Expr(size * size) + within;
        at[2] = to[2] / b, at[3] = to[3] / b;
    } else {
        const Expr within = rows_first ? to[1] / depth : to[1] % Expr(size * size);
        at[1] = rows_first ? to[1] % depth : to[1] / Expr(size * size);
        at[2] = to[2] * b + within / b, at[3] = to[3] * b + within % b;
    }
    return {c.result(c.read(x, at, axes), axes, x.dtype)};
}

std::vector<Value> pad_handler(Context &c) {
    const Value &x = c.in(0);
    const std::string mode = c.node.text("mode", "constant");
    const std::vector<int64_t> pads = c.has(1) ? c.numbers(1, "pads") : c.node.integers("pads");
    std::vector<int64_t> over;
    if (c.has(3)) over = c.axes(c.numbers(3, "axes"), x.rank());
    else
        for (int64_t i = 0; i < x.rank(); i++) over.push_back(i);
    if (pads.size() != 2 * over.size())
        c.refuse("it has " + std::to_string(pads.size()) + " pads; expected two an axis.", "Check the exporter.");
    std::vector<Axis> own;
    const Tile source = c.spread(x, own);
    std::vector<Expr> extents;
    for (const Axis &a : own) extents.push_back(a.extent);
    for (size_t i = 0; i < over.size(); i++) {
        Expr &e = extents[static_cast<size_t>(over[i])];
        e = e + Expr(pads[i] + pads[i + over.size()]);
    }
    const std::vector<Axis> axes = c.new_axes(extents);
    std::vector<Expr> at = variables(axes);
    Expr inside;
    for (size_t i = 0; i < over.size(); i++) {
        if (pads[i] == 0 && pads[i + over.size()] == 0) continue;
        Expr &p = at[static_cast<size_t>(over[i])];
        const Expr n = own[static_cast<size_t>(over[i])].extent;
        p = p - Expr(pads[i]);
        if (mode == "edge") p = max(min(p, n - 1), Expr(0));
        else if (mode == "wrap") p = (p % n + n) % n;
        else if (mode == "reflect") {
            // There and back again: the period is 2 (n - 1).
            const Expr period = max((n - 1) * Expr(2), Expr(1));
            const Expr around = (p % period + period) % period;
            p = min(around, period - around);
            p = max(min(p, n - 1), Expr(0));
        } else {
            const Expr here = Expr(0) <= p && p < n;
            inside = inside.defined() ? inside && here : here;
        }
        if (mode != "constant") p = c.space.simplified(p);
    }
    Tile read = c.read(x, at, axes);
    if (inside.defined()) {
        Expr outside = is_float(read.dtype())           ? constant(read.dtype(), 0)
                       : read.dtype() == DType::boolean ? constant_int(DType::boolean, 0)
                                                        : constant_int(read.dtype(), 0);
        if (c.has(2)) outside = c.tile(c.in(2)).value();
        else if (c.node.find("value")) outside = constant(read.dtype(), c.node.real("value", 0));
        read = Tile(&c.f, select(inside, read_where(read.value(), inside), outside), read.dims());
    }
    return {c.result(read, axes, x.dtype)};
}

std::vector<Value> if_handler(Context &c) {
    const std::vector<int64_t> condition = c.numbers(0, "condition");
    if (!c.runner) c.refuse("a graph within a constant.", "Check the exporter.");
    return c.runner->run(c.node.graph(condition.at(0) ? "then_branch" : "else_branch"), {});
}

}  // namespace

std::vector<Operator> shape_operators() {
    return {
        {"Shape", shape_handler},
        {"Size", size_handler},
        {"Reshape", reshape},
        {"Flatten", flatten},
        {"Squeeze", squeeze},
        {"Unsqueeze", unsqueeze},
        {"Transpose", transpose_handler},
        {"Concat", concat},
        {"Slice", slice},
        {"Split", split},
        {"Expand", expand},
        {"Tile", tile_handler},
        {"Constant", constant_handler},
        {"ConstantOfShape", constant_of_shape},
        {"Range", range},
        {"EyeLike", eye_like},
        {"Trilu", triangle},
        {"DepthToSpace", depth_space},
        {"SpaceToDepth", depth_space},
        {"Pad", pad_handler},
        {"If", if_handler},
    };
}

}  // namespace tessera::onnx

// The part of function.h that recognises convolutions, pools and padding, which gathers would say at greater length.
#include <algorithm>

#include "algorithms/export/onnx/function.h"
#include "algorithms/index/prove.h"
#include "support/text/error.h"

namespace tessera::onnx {

namespace {

// position * stride + tap * dilation.
struct WindowIndex {
    std::string position, tap;
    int64_t stride = 1, dilation = 1;
};

// An operand of a fold over windows: a tensor whose axes are each an index of their own, or a window.
struct Windowed {
    Expr load;
    std::vector<std::string> plain;  // for each axis, "" for a window
    std::vector<WindowIndex> windows;
    std::vector<size_t> window_axes;
};

std::optional<WindowIndex> window_index(const Expr &e, const std::vector<std::string> &positions, const std::vector<std::string> &taps,
                                        const Bounds &bounds) {
    if (e.type() != DType::index) return std::nullopt;
    const std::optional<Linear> form = sum_form(e, bounds);
    if (!form || form->constant != 0 || form->terms.size() != 2) return std::nullopt;
    WindowIndex w;
    for (const Linear::Term &t : form->terms) {
        if (t.factors.size() != 1 || t.factors[0].kind() != ExprKind::variable || t.coefficient < 1) return std::nullopt;
        const std::string &name = t.factors[0]->name;
        if (contains(positions, name)) w.position = name, w.stride = t.coefficient;
        else if (contains(taps, name)) w.tap = name, w.dilation = t.coefficient;
    }
    if (w.position.empty() || w.tap.empty()) return std::nullopt;
    return w;
}

std::optional<Windowed> windowed(const Expr &e, const Stage &stage, const Reduce &r, const Bounds &bounds) {
    Windowed w;
    w.load = e.kind() == ExprKind::cast && e.type() == DType::f32 ? e->args[0] : e;
    if (w.load.kind() != ExprKind::load || w.load->guarded || e.type() != DType::f32 || !is_float(w.load.type())) return std::nullopt;
    std::vector<std::string> seen;
    for (size_t i = 0; i < w.load->args.size(); i++) {
        const Expr &at = w.load->args[i];
        if (at.kind() == ExprKind::variable) {
            w.plain.push_back(at->name);
            seen.push_back(at->name);
            continue;
        }
        const auto window = window_index(at, stage.dims, r.dims, bounds);
        if (!window) return std::nullopt;
        w.plain.emplace_back();
        w.windows.push_back(*window), w.window_axes.push_back(i);
        seen.push_back(window->position), seen.push_back(window->tap);
    }
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) return std::nullopt;
    return w;
}

}  // namespace

Expr FunctionMaker::size_expr(const std::string &dim) const {
    const std::string root = root_of(dim);
    const Dim *d = a_.find_dim(root);
    if (!d || d->kind == DimKind::symbolic) return extent(root);
    return d->kind == DimKind::fixed ? Expr(d->value) : d->size;
}

bool FunctionMaker::has_whole_axes(const Expr &load, const std::vector<std::string> &plain) {
    const auto from = tensors_.find(load->name);
    if (from == tensors_.end()) throw Refused{};
    for (size_t i = 0; i < plain.size(); i++)
        if (!plain[i].empty() && !same_extent(plain[i], from->second.dims[i])) return false;
    return true;
}

// The tensor with its axes in this order, and some of them joined: an axis for each group.
std::string FunctionMaker::grouped(const Expr &load, const std::vector<std::vector<size_t>> &groups) {
    const Stored &from = tensors_.at(load->name);
    Term all = converted({from.name, from.dtype, from.dims}, DType::f32, top_);
    std::vector<int64_t> order;
    std::vector<std::string> shape;
    bool moves = false, joins = false;
    for (const std::vector<size_t> &group : groups) {
        Term count = number(DType::i64, 1, top_);
        for (size_t k = 0; k < group.size(); k++) {
            moves |= group[k] != order.size();
            order.push_back(static_cast<int64_t>(group[k]));
            const Term extent = extent_of(from.dims[group[k]]);
            count = k == 0 ? extent : operation_of(Op::mul, {count, extent}, false, top_);
        }
        joins |= group.size() != 1;
        shape.push_back(top_.one("Unsqueeze", {count.name, top_.integers({0})}));
    }
    if (moves) all.name = top_.one("Transpose", {all.name}, attributes({integers_attribute("perm", order)}));
    if (!joins) return all.name;
    return top_.one("Reshape", {all.name, top_.one("Concat", shape, attributes({integer_attribute("axis", 0)}))});
}

// The result of an operator, whose axes before the windows are taken apart again, and whose windows are cut to those that are asked for.
Term FunctionMaker::of_windows(const std::string &made, std::vector<std::string> axes, const std::vector<size_t> &window_axes,
                               const std::vector<int64_t> &strides, const std::vector<int64_t> &dilations,
                               const std::vector<std::string> &taps, const std::vector<std::string> &positions, const Expr &load) {
    const Stored &from = tensors_.at(load->name);
    std::string value = made;
    for (size_t i = 0; i < positions.size(); i++) {
        const Expr room = size_expr(from.dims[window_axes[i]]) - Expr(dilations[i]) * (size_expr(taps[i]) - Expr(1)) - Expr(1);
        if (!simplify(room / Expr(strides[i]) + Expr(1) - size_expr(positions[i]), bounds_).is_constant(0)) {
            const std::string end = top_.one("Unsqueeze", {extent_of(positions[i]).name, top_.integers({0})});
            value = top_.one("Slice", {value, top_.integers({0}), end, top_.integers({static_cast<int64_t>(i) + 2})});
        }
    }
    axes.insert(axes.end(), positions.begin(), positions.end());
    return reshaped({value, DType::f32, {}}, shape_of(axes, top_), axes, top_);
}

std::optional<Term> FunctionMaker::convolution(const Stage &stage, const Reduce &r) {
    if (standard_name(r.monoid) != "dot" || r.where.defined()) return std::nullopt;
    auto x = windowed(r.inputs[0], stage, r, bounds_), w = windowed(r.inputs[1], stage, r, bounds_);
    if (!x || !w) return std::nullopt;
    if (x->windows.empty()) std::swap(x, w);
    if (x->windows.empty() || x->windows.size() > 3 || !w->windows.empty()) return std::nullopt;
    if (!has_whole_axes(x->load, x->plain) || !has_whole_axes(w->load, w->plain)) return std::nullopt;

    std::vector<size_t> batch, group, channels, w_group, w_out, w_channels, w_taps;
    std::vector<std::string> taps, positions, front, out;
    std::vector<int64_t> strides, dilations;
    auto find = [](const std::vector<std::string> &names, const std::string &name) {
        return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    int64_t groups = 1;
    size_t folded = 0;
    for (size_t i = 0; i < x->plain.size(); i++) {
        const std::string &name = x->plain[i];
        if (name.empty()) continue;
        const bool is_folded = contains(r.dims, name), in_w = contains(w->plain, name);
        if (is_folded != in_w && is_folded) return std::nullopt;  // a sum over x alone
        if (is_folded) channels.push_back(i), w_channels.push_back(find(w->plain, name)), folded++;
        else if (!in_w) batch.push_back(i);
        else {
            const Dim &d = a_.dim(root_of(name));
            if (d.kind != DimKind::fixed) return std::nullopt;  // Conv's `group` is a number
            groups *= d.value;
            group.push_back(i), w_group.push_back(find(w->plain, name));
        }
    }
    for (const WindowIndex &window : x->windows) {
        if (!contains(w->plain, window.tap) || contains(w->plain, window.position)) return std::nullopt;
        w_taps.push_back(find(w->plain, window.tap));
        taps.push_back(window.tap), positions.push_back(window.position);
        strides.push_back(window.stride), dilations.push_back(window.dilation), folded++;
    }
    for (size_t i = 0; i < w->plain.size(); i++) {
        const std::string &name = w->plain[i];
        if (contains(x->plain, name) || contains(taps, name)) continue;
        if (contains(r.dims, name)) return std::nullopt;
        w_out.push_back(i), out.push_back(name);
    }
    if (folded != r.dims.size() || groups == 0) return std::nullopt;
    auto joined_axes = [](std::vector<size_t> a, const std::vector<size_t> &b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    };
    std::vector<std::vector<size_t>> x_groups = {batch, joined_axes(group, channels)}, w_groups = {joined_axes(w_group, w_out), w_channels};
    for (const size_t axis : x->window_axes) x_groups.push_back({axis});
    for (const size_t axis : w_taps) w_groups.push_back({axis});
    for (const size_t axis : joined_axes(batch, group)) front.push_back(x->plain[axis]);
    front.insert(front.end(), out.begin(), out.end());
    if (front.size() + positions.size() != stage.dims.size()) return std::nullopt;
    const std::string made = top_.one("Conv", {grouped(x->load, x_groups), grouped(w->load, w_groups)},
                                      attributes({integers_attribute("strides", strides), integers_attribute("dilations", dilations),
                                                  integer_attribute("group", groups)}));
    return of_windows(made, front, x->window_axes, strides, dilations, taps, positions, x->load);
}

std::optional<Term> FunctionMaker::pool(const Stage &stage, const Reduce &r) {
    const std::string monoid = standard_name(r.monoid);
    if ((monoid != "max" && monoid != "max_number" && monoid != "sum") || r.where.defined()) return std::nullopt;
    const auto x = windowed(r.inputs[0], stage, r, bounds_);
    if (!x || x->windows.empty() || x->windows.size() > 3 || x->windows.size() != r.dims.size()) return std::nullopt;
    if (!has_whole_axes(x->load, x->plain)) return std::nullopt;
    std::vector<size_t> batch;
    std::vector<std::string> taps, positions, front;
    std::vector<int64_t> strides, dilations, kernel;
    double count = 1;
    for (size_t i = 0; i < x->plain.size(); i++)
        if (!x->plain[i].empty()) batch.push_back(i), front.push_back(x->plain[i]);
    for (const WindowIndex &window : x->windows) {
        const Dim &d = a_.dim(root_of(window.tap));
        if (d.kind != DimKind::fixed || d.value < 1) return std::nullopt;  // the operator's kernel_shape is numbers
        kernel.push_back(d.value), count *= static_cast<double>(d.value);
        taps.push_back(window.tap), positions.push_back(window.position);
        strides.push_back(window.stride), dilations.push_back(window.dilation);
    }
    if (front.size() + positions.size() != stage.dims.size()) return std::nullopt;
    std::vector<std::vector<size_t>> groups = {batch, {}};
    for (const size_t axis : x->window_axes) groups.push_back({axis});
    const std::string made = top_.one(monoid == "sum" ? "AveragePool" : "MaxPool", {grouped(x->load, groups)},
                                      attributes({integers_attribute("kernel_shape", kernel), integers_attribute("strides", strides),
                                                  integers_attribute("dilations", dilations)}));
    const Term pooled = of_windows(made, front, x->window_axes, strides, dilations, taps, positions, x->load);
    return monoid == "sum" ? operation_of(Op::mul, {pooled, number(DType::f32, count, top_)}, false, top_) : pooled;
}

std::optional<Term> FunctionMaker::padded(const Stored &from, const std::vector<Expr> &index, const Expr &guard, const Expr &fill,
                                          Place &at) {
    if (!fill.is_constant() || is_narrow_float(from.dtype)) return std::nullopt;
    Body &body = at.body;
    std::vector<std::string> axes, starts, ends;
    std::vector<int64_t> numbers;
    Expr inside;
    for (size_t i = 0; i < index.size(); i++) {
        if (index[i].type() != DType::index) return std::nullopt;
        const std::optional<Linear> sum = sum_form(index[i], bounds_);
        if (!sum) return std::nullopt;
        const Linear &form = *sum;
        if (form.terms.size() != 1 || form.terms[0].coefficient != 1 || form.terms[0].factors.size() != 1) return std::nullopt;
        const Expr &v = form.terms[0].factors[0];
        if (v.kind() != ExprKind::variable || at.variables.count(v->name) || contains(axes, v->name)) return std::nullopt;
        axes.push_back(v->name);
        if (form.constant == 0 && same_extent(v->name, from.dims[i])) continue;
        const Expr here = Expr(0) <= index[i] && index[i] < extent(from.dims[i]);
        inside = inside.defined() ? inside && here : here;
        // What would be cut off in place of padded is no Pad.
        if (form.constant > 0 || !prove(Expr(0) <= size_expr(v->name) - size_expr(from.dims[i]) + Expr(form.constant), bounds_))
            return std::nullopt;
        const Term before = number(DType::i64, static_cast<double>(-form.constant), body);
        const Term grown = operation_of(Op::sub, {extent_of(v->name), extent_of(from.dims[i])}, false, body);
        numbers.push_back(static_cast<int64_t>(i));
        starts.push_back(body.integers({-form.constant}));
        ends.push_back(body.one("Unsqueeze", {operation_of(Op::sub, {grown, before}, false, body).name, body.integers({0})}));
    }
    if (!inside.defined() || !equal(inside, guard)) return std::nullopt;
    std::vector<std::string> pads = starts;
    pads.insert(pads.end(), ends.begin(), ends.end());
    const Term filling = converted(value(fill, at), from.dtype, body);
    const std::string made = body.one(
        "Pad", {from.name, body.one("Concat", pads, attributes({integer_attribute("axis", 0)})), filling.name, body.integers(numbers)});
    return Term{made, from.dtype, axes};
}

}  // namespace tessera::onnx

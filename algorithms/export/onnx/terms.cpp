// The part of function.h that brings values over named axes together.
#include <algorithm>

#include "algorithms/export/onnx/function.h"
#include "algorithms/index/prove.h"
#include "support/text/error.h"

namespace tessera::onnx {

std::string FunctionMaker::root_of(const std::string &dim) const {
    std::string name = dim;
    for (int steps = 0; steps < 64; steps++) {
        if (const auto it = same_as_.find(name); it != same_as_.end()) {
            name = it->second;
            continue;
        }
        const Dim *d = a_.find_dim(name);
        if (!d || d->equals.empty()) break;
        name = d->equals;
    }
    return name;
}

Term FunctionMaker::extent_of(const std::string &dim) {
    const std::string root = root_of(dim);
    if (const auto it = extents_.find(root); it != extents_.end()) return it->second;
    const Dim *d = a_.find_dim(root);
    require(d != nullptr, "an axis without an extent: " + dim);
    Term term;
    if (d->kind == DimKind::fixed) {
        term = {top_.integer(d->value), DType::i64, {}};
    } else {
        require(d->kind == DimKind::derived, "a symbolic dim without an extent: " + dim);
        term = value(d->size, outermost_);
        if (!term.axes.empty())
            throw Refused{"the extent of '" + root + "' varies with " + join(term.axes),
                          "Declare the tensor with the largest extent, and mask what is beyond."};
        term = element_wise("Max", {term, number(DType::i64, 0, top_)}, DType::i64, top_);
    }
    return extents_[root] = term;
}

bool FunctionMaker::same_extent(const std::string &a, const std::string &b) {
    const std::string x = root_of(a), y = root_of(b);
    if (x == y) return true;
    if (!a_.find_dim(x) || !a_.find_dim(y)) return false;
    const Expr difference = simplify(extent(x) - extent(y), bounds_);
    if (difference.is_constant(0)) return true;
    return simplify(size_expr(x) - size_expr(y), bounds_).is_constant(0);
}

std::vector<std::string> FunctionMaker::in_order(std::vector<std::string> axes) const {
    auto place = [&](const std::string &axis) { return std::find(order_.begin(), order_.end(), axis) - order_.begin(); };
    std::stable_sort(axes.begin(), axes.end(), [&](const std::string &x, const std::string &y) { return place(x) < place(y); });
    return axes;
}

std::vector<std::string> FunctionMaker::joined(const std::vector<Term> &terms) const {
    std::vector<std::string> axes;
    for (const Term &t : terms)
        for (const std::string &axis : t.axes)
            if (!contains(axes, axis)) axes.push_back(axis);
    return in_order(axes);
}

std::string FunctionMaker::shape_of(const std::vector<std::string> &axes, Body &body) {
    std::vector<int64_t> fixed;
    for (const std::string &axis : axes)
        if (const Dim *d = a_.find_dim(root_of(axis)); d && d->kind == DimKind::fixed) fixed.push_back(d->value);
    if (fixed.size() == axes.size()) return body.integers(fixed);
    std::vector<std::string> all;
    for (const std::string &axis : axes) all.push_back(body.one("Unsqueeze", {extent_of(axis).name, body.integers({0})}));
    if (all.size() == 1) return all[0];
    return body.one("Concat", all, attributes({integer_attribute("axis", 0)}));
}

std::string FunctionMaker::aligned(const Term &term, const std::vector<std::string> &axes, Body &body) {
    if (term.axes.empty()) return term.name;
    std::vector<int64_t> order, missing;
    bool moves = false, begun = false;
    int64_t at = 0;
    for (const std::string &axis : axes) {
        const auto found = std::find(term.axes.begin(), term.axes.end(), axis);
        if (found != term.axes.end()) {
            order.push_back(found - term.axes.begin());
            moves |= order.back() != static_cast<int64_t>(order.size()) - 1;
            begun = true;
        } else if (begun) {
            missing.push_back(at);
        }
        if (begun) at++;
    }
    require(order.size() == term.axes.size(), "a value has an axis that its reader lacks");
    std::string name = term.name;
    if (moves) name = body.one("Transpose", {name}, attributes({integers_attribute("perm", order)}));
    if (!missing.empty()) name = body.one("Unsqueeze", {name, body.integers(missing)});
    return name;
}

Term FunctionMaker::spread(const Term &term, const std::vector<std::string> &axes, Body &body) {
    std::string name = aligned(term, axes, body);
    if (term.axes.size() < axes.size()) name = body.one("Expand", {name, shape_of(axes, body)});
    return {name, term.dtype, axes};
}

Term FunctionMaker::element_wise(const std::string &op, const std::vector<Term> &terms, DType dtype, Body &body,
                                 const Attributes &attributes) {
    const std::vector<std::string> axes = joined(terms);
    std::vector<std::string> names;
    for (const Term &t : terms) names.push_back(aligned(t, axes, body));
    return {body.one(op, names, attributes), dtype, axes};
}

Term FunctionMaker::where(const Term &condition, const Term &a, const Term &b, Body &body) {
    if (a.dtype == DType::boolean) {
        const Term neither = element_wise("Not", {condition}, DType::boolean, body);
        return element_wise(
            "Or", {element_wise("And", {condition, a}, DType::boolean, body), element_wise("And", {neither, b}, DType::boolean, body)},
            DType::boolean, body);
    }
    // Runtimes choose among the wide types alone.
    const DType wide = is_arithmetic(a.dtype) ? a.dtype : is_float(a.dtype) ? DType::f32 : DType::i32;
    const Term chosen = element_wise("Where", {condition, converted(a, wide, body), converted(b, wide, body)}, wide, body);
    return converted(chosen, a.dtype, body);
}

Term FunctionMaker::converted(const Term &term, DType type, Body &body) {
    const int32_t number = onnx_type(type);
    if (term.dtype == type || (number != 0 && onnx_type(term.dtype) == number)) return {term.name, type, term.axes};
    if (number == 0) throw Refused{"ONNX has no type " + std::string(name_of(type)), "Store the values in another type."};
    if (type == DType::f4e2m1fn || term.dtype == DType::f4e2m1fn) functions_.parts.needs_opset(23);
    if (type == DType::f8e8m0fnu || term.dtype == DType::f8e8m0fnu) functions_.parts.needs_opset(24);
    return {body.one("Cast", {term.name}, attributes({integer_attribute("to", number)})), type, term.axes};
}

Term FunctionMaker::number(const Scalar &value, Body &body) {
    return {body.number(value), value.type == DType::index ? DType::i64 : value.type, {}};
}

Term FunctionMaker::number(DType type, double value, Body &body) {
    if (type == DType::index) type = DType::i64;
    return number(is_float(type) ? Scalar::of_real(type, value) : Scalar::of_integer(type, static_cast<int64_t>(value)), body);
}

Term FunctionMaker::range(const std::string &dim, Body &body) {
    return {body.one("Range", {body.integer(0), extent_of(dim).name, body.integer(1)}), DType::i64, {dim}};
}

Term FunctionMaker::reshaped(const Term &term, const std::string &shape, const std::vector<std::string> &axes, Body &body) {
    return {body.one("Reshape", {term.name, shape}, attributes({integer_attribute("allowzero", 1)})), term.dtype, axes};
}

Term FunctionMaker::flat(const Term &term, Body &body) {
    if (term.axes.size() == 1) return term;
    return {body.one("Reshape", {term.name, body.integers({-1})}), term.dtype, {"flat"}};
}

}  // namespace tessera::onnx

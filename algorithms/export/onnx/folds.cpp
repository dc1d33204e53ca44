// The part of function.h that makes nodes of folds: by an operator for standard monoids, by the passes of their batch form for others that
// have one, else by steps.
#include <algorithm>
#include <cmath>

#include "algorithms/export/onnx/function.h"
#include "support/text/error.h"

namespace tessera::onnx {

namespace {

std::vector<std::string> without(std::vector<std::string> names, const std::vector<std::string> &gone) {
    names.erase(std::remove_if(names.begin(), names.end(), [&](const std::string &n) { return contains(gone, n); }), names.end());
    return names;
}

bool equal_all(const std::vector<Expr> &a, const std::vector<Expr> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr &x, const Expr &y) { return equal(x, y); });
}

Scalar identity_of(const std::string &monoid, DType type) {
    for (const StandardMonoid &s : standard_monoids)
        if (monoid == s.name) return s.make(type).parts[0].identity;
    broken("a monoid that is none of the standard ones");
}

}  // namespace

std::string standard_name(const Monoid &m) {
    for (const StandardMonoid &s : standard_monoids) {
        const Monoid standard = s.make(m.parts[0].identity.type);
        if (m.parts.size() != standard.parts.size() || m.inputs != standard.inputs) continue;
        if (std::any_of(m.parts.begin(), m.parts.end(), [](const Part &p) { return !p.dims.empty(); })) continue;
        if (equal_all(m.lift, standard.lift) && equal_all(m.combine, standard.combine) && equal_all(m.step, standard.step)) return s.name;
    }
    return "";
}

// An Einsum over letters for axes; where that cannot say it, a product that is added up.
Term FunctionMaker::product_sum(const Term &a, const Term &b, const std::vector<std::string> &over, Body &body) {
    const std::vector<std::string> all = joined({a, b});
    const bool is_whole = std::all_of(over.begin(), over.end(), [&](const std::string &d) { return contains(all, d); });
    if (!is_whole || a.axes.empty() || b.axes.empty() || all.size() > 26)
        return folded_by("sum", {operation_of(Op::mul, {a, b}, false, body)}, over, {}, body);
    auto letters = [&](const std::vector<std::string> &axes) {
        std::string text;
        for (const std::string &axis : axes) text += static_cast<char>('a' + (std::find(all.begin(), all.end(), axis) - all.begin()));
        return text;
    };
    const std::vector<std::string> kept = without(all, over);
    const std::string equation = letters(a.axes) + "," + letters(b.axes) + "->" + letters(kept);
    return {body.one("Einsum", {a.name, b.name}, attributes({text_attribute("equation", equation)})), a.dtype, kept};
}

Term FunctionMaker::folded_by(const std::string &monoid, const std::vector<Term> &inputs, const std::vector<std::string> &over,
                              const Term &where_it_holds, Body &body) {
    const bool masked = !where_it_holds.name.empty();
    if (monoid == "dot") {
        if (!masked) return product_sum(inputs[0], inputs[1], over, body);
        return folded_by("sum", {operation_of(Op::mul, inputs, false, body)}, over, where_it_holds, body);
    }
    Term x = inputs[0];
    const bool truth = x.dtype == DType::boolean;
    const Scalar identity =
        truth ? Scalar::of_integer(DType::boolean, monoid == "min" || monoid == "product") : identity_of(monoid, x.dtype);
    if (monoid == "max_number" && is_float(x.dtype))
        x = where(element_wise("IsNaN", {x}, DType::boolean, body), number(identity, body), x, body);
    if (masked) x = where(where_it_holds, x, number(identity, body), body);
    std::vector<std::string> axes = x.axes;
    for (const std::string &d : over)
        if (!contains(axes, d)) axes.push_back(d);
    if (axes.size() > x.axes.size()) x = spread(x, in_order(axes), body);
    if (over.empty()) return x;
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < x.axes.size(); i++)
        if (contains(over, x.axes[i])) numbers.push_back(static_cast<int64_t>(i));
    if (truth) x = converted(x, DType::i32, body);
    const char *op = monoid == "sum" ? "ReduceSum" : monoid == "product" ? "ReduceProd" : monoid == "min" ? "ReduceMin" : "ReduceMax";
    const Term result{body.one(op, {x.name, body.integers(numbers)}, attributes({integer_attribute("keepdims", 0)})), x.dtype,
                      without(x.axes, over)};
    return truth ? converted(result, DType::boolean, body) : result;
}

std::vector<Term> FunctionMaker::folded_in_batches(const Monoid &monoid, const std::vector<Term> &inputs,
                                                   const std::vector<std::string> &over, const Term &where_it_holds, Body &body) {
    Place at{body};
    at.inputs = inputs;
    for (const BatchPass &pass : monoid.batch) {
        std::vector<Term> v;
        for (const Expr &e : pass.values) v.push_back(value(e, at));
        at.right.push_back(pass.monoid.empty() || pass.monoid == "each" ? v[0] : folded_by(pass.monoid, v, over, where_it_holds, body));
    }
    std::vector<Term> parts;
    for (const int pass : monoid.batch_parts) parts.push_back(at.right.at(static_cast<size_t>(pass)));
    return parts;
}

std::vector<Term> FunctionMaker::folded(const Monoid &monoid, const std::vector<Term> &inputs, const std::vector<std::string> &over,
                                        const Term &where_it_holds, const Stage &stage, Place &at) {
    Body &body = at.body;
    const std::string name = standard_name(monoid);
    if (find_pass_monoid(name)) {
        Term result = folded_by(name, inputs, over, where_it_holds, body);
        const Scalar identity = monoid.parts[0].identity;
        if ((name == "max" || name == "min" || name == "max_number") && !(identity == identity_of(name, identity.type)))
            result = operation_of(name == "min" ? Op::min : Op::max, {result, number(identity, body)}, false, body);
        return {result};
    }
    if (name == "argmax") {
        // The least position of those that have the largest value, NaN above all others.
        const DType type = inputs[0].dtype;
        Term best = folded_by("max", {inputs[0]}, over, where_it_holds, body);
        Term is_best = element_wise("Equal", {inputs[0], best}, DType::boolean, body);
        if (is_float(type)) {
            const Term nan = element_wise("IsNaN", {inputs[0]}, DType::boolean, body),
                       any = folded_by("max", {nan}, over, where_it_holds, body);
            best = where(any, number(Scalar::of_real(type, NAN), body), best, body);
            is_best = where(any, nan, is_best, body);
        }
        const Term far = number(monoid.parts[1].identity, body);
        const Term at_best = where(is_best, inputs[1], far, body);
        return {best, folded_by("min", {at_best}, over, where_it_holds, body)};
    }
    if (!monoid.batch.empty()) return folded_in_batches(monoid, inputs, over, where_it_holds, body);
    return stepped(monoid, inputs, over, where_it_holds, {}, stage.dims, false, true, body).last;
}

void FunctionMaker::reduce_stage(const Stage &stage, const Reduce &reduce) {
    if (scatters(stage)) return scatter_stage(stage, reduce);
    Place at{top_};
    Reduce r = reduce;
    // A ragged dim goes up to the largest of its extents, and what is beyond its own is left out.
    for (const std::string &d : r.dims) {
        const Dim &dim = a_.dim(root_of(d));
        if (dim.kind != DimKind::derived || variables_in(dim.size).empty()) continue;
        const Term size = value(dim.size, at);
        const Term most = folded_by("max", {size}, size.axes, {}, top_);
        extents_[dim.name] = element_wise("Max", {most, number(DType::i64, 0, top_)}, DType::i64, top_);
        const Expr inside = variable(d) < dim.size;
        for (Expr &e : r.inputs) e = kept_.emplace_back(read_where(e, inside));
        r.where = kept_.emplace_back(r.where.defined() ? read_where(r.where, inside) && inside : inside);
    }
    for (const Part &p : r.monoid.parts)
        for (const std::string &d : p.dims)
            if (!contains(order_, d)) order_.push_back(d);
    std::vector<Term> parts;
    if (const auto one = convolution(stage, r)) parts = {*one};
    else if (const auto pooled = pool(stage, r)) parts = {*pooled};
    else {
        std::vector<Term> inputs;
        for (const Expr &e : r.inputs) inputs.push_back(value(e, at));
        parts = folded(r.monoid, inputs, r.dims, r.where.defined() ? value(r.where, at) : Term{}, stage, at);
    }
    for (const Tensor &t : results_of(stage)) {
        const std::vector<std::string> names = names_of_results(stage);
        const size_t part = static_cast<size_t>(std::find(names.begin(), names.end(), t.name) - names.begin());
        keep(t, parts.at(part), at);
    }
}

// Each element goes to its position among all of the result's, or behind them where it is dropped.
void FunctionMaker::scatter_stage(const Stage &stage, const Reduce &r) {
    Body &body = top_;
    Place at{body};
    const std::string monoid = standard_name(r.monoid);
    if (!find_pass_monoid(monoid))
        throw Refused{"a scatter by the monoid '" + r.monoid.name + "'", "Scatter by sum, product, max or min, which ScatterElements has."};
    std::vector<std::string> loops = ordinary_dims(stage);
    loops.insert(loops.end(), r.dims.begin(), r.dims.end());
    order_ = loops;
    std::vector<Term> inputs, index;
    for (const Expr &e : r.inputs) inputs.push_back(value(e, at));
    const Term element = monoid == "dot" ? operation_of(Op::mul, inputs, false, body) : inputs[0];
    const Stored result{"", element.dtype, stage.dims};
    Term inside = r.where.defined() ? value(r.where, at) : Term{};
    for (size_t i = 0; i < r.at.size(); i++) {
        index.push_back(converted(value(r.at[i], at), DType::i64, body));
        if (r.at[i].kind() == ExprKind::variable && r.at[i]->name == stage.dims[i]) continue;
        const Term above = operation_of(Op::le, {number(DType::i64, 0, body), index[i]}, false, body);
        const Term below = operation_of(Op::lt, {index[i], extent_of(stage.dims[i])}, false, body);
        const Term here = operation_of(Op::bit_and, {above, below}, false, body);
        inside = inside.name.empty() ? here : operation_of(Op::bit_and, {inside, here}, false, body);
    }
    Term count = number(DType::i64, 1, body);
    for (const std::string &d : stage.dims) count = operation_of(Op::mul, {count, extent_of(d)}, false, body);
    Term place = position(result, index, body);
    if (!inside.name.empty()) place = where(inside, place, count, body);
    const Term one_more = operation_of(Op::add, {count, number(DType::i64, 1, body)}, false, body);
    const std::string length = body.one("Unsqueeze", {one_more.name, body.integers({0})});
    const std::string empty = body.one("Expand", {body.number(r.monoid.parts[0].identity), length});
    const Term places = flat(spread(place, loops, body), body), put = flat(spread(element, loops, body), body);
    const char *reduction = monoid == "product" ? "mul" : monoid == "min" ? "min" : monoid.starts_with("max") ? "max" : "add";
    const std::string all = body.one("ScatterElements", {empty, places.name, put.name},
                                     attributes({integer_attribute("axis", 0), text_attribute("reduction", reduction)}));
    const std::string cut =
        body.one("Slice", {all, body.integers({0}), body.one("Unsqueeze", {count.name, body.integers({0})}), body.integers({0})});
    const Term whole = reshaped({cut, element.dtype, {}}, shape_of(stage.dims, body), stage.dims, body);
    for (const Tensor &t : results_of(stage)) keep(t, whole, at);
}

}  // namespace tessera::onnx

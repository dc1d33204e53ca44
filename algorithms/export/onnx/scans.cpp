// The part of function.h that makes nodes of prefix folds, and of folds that only steps can say.
#include <algorithm>

#include "algorithms/export/onnx/function.h"
#include "support/text/error.h"

namespace tessera::onnx {

// The first axis from its end. Not every runtime has Scan's attribute for it.
static std::string reversed(const Term &term, Body &body) {
    return body.one("Slice", {term.name, body.integers({-1}), body.integers({INT64_MIN}), body.integers({0}), body.integers({-1})});
}

FunctionMaker::Sequence FunctionMaker::stepped(const Monoid &monoid, const std::vector<Term> &inputs, const std::vector<std::string> &over,
                                               const Term &where_it_holds, const Term &begins, const std::vector<std::string> &dims,
                                               bool backward, bool inclusive, Body &body) {
    auto folded = [&](const std::string &axis) { return std::find(over.begin(), over.end(), axis) != over.end(); };
    // What one element is of each input: the folded dims are one axis in front.
    std::vector<std::string> given;
    std::vector<Term> elements;
    Body inner(body.parts, body.names, &body);
    inner.topic = body.topic + "_step";
    Graph graph;
    graph.name = body.topic + "_steps";
    std::vector<ValueInfo> scanned;
    auto element = [&](const Term &term) -> Term {
        if (term.name.empty()) return term;
        std::vector<std::string> axes = over, rest;
        for (const std::string &axis : term.axes)
            if (!folded(axis)) rest.push_back(axis);
        axes.insert(axes.end(), rest.begin(), rest.end());
        if (term.axes.size() == rest.size() && !given.empty()) return term;  // the same for all, and seen from within
        Term all = spread(term, axes, body);
        if (over.size() > 1) {
            Term count = number(DType::i64, 1, body);
            for (const std::string &d : over) count = operation_of(Op::mul, {count, extent_of(d)}, false, body);
            std::string shape = body.one("Unsqueeze", {count.name, body.integers({0})});
            if (!rest.empty()) shape = body.one("Concat", {shape, shape_of(rest, body)}, attributes({integer_attribute("axis", 0)}));
            all = reshaped(all, shape, {}, body);
        }
        given.push_back(backward ? reversed(all, body) : all.name);
        scanned.push_back(inner_value(body.names.fresh(body.topic + "_element"), term.dtype, rest.size()));
        return {scanned.back().name, term.dtype, rest};
    };
    for (const Term &t : inputs) elements.push_back(element(t));
    const Term holds = element(where_it_holds), anew = element(begins);

    Place at{inner};
    at.inputs = elements;
    std::vector<std::string> initial;
    std::vector<std::vector<std::string>> axes;
    std::vector<Term> before;
    for (const Part &p : monoid.parts) {
        axes.push_back(dims);
        axes.back().insert(axes.back().end(), p.dims.begin(), p.dims.end());
        const Term identity = number(p.identity, body);
        initial.push_back(spread(identity, axes.back(), body).name);
        graph.inputs.push_back(inner_value(body.names.fresh(body.topic + "_" + identifier(p.name)), identity.dtype, axes.back().size()));
        Term state{graph.inputs.back().name, identity.dtype, axes.back()};
        if (!anew.name.empty()) state = where(anew, identity, state, inner);
        before.push_back(state);
    }
    at.left = before;
    std::vector<Term> after;
    for (size_t p = 0; p < monoid.parts.size(); p++) {
        Term next = value(monoid.step[p], at);
        if (!holds.name.empty()) next = where(holds, next, before[p], inner);
        after.push_back(spread(next, axes[p], inner));
    }
    graph.inputs.insert(graph.inputs.end(), scanned.begin(), scanned.end());
    // Each result of a graph is a value of its own.
    auto result = [&](const Term &t) {
        const std::string name = body.names.fresh(inner.topic + "_result");
        Node identity;
        identity.op = "Identity", identity.inputs = {t.name}, identity.outputs = {name};
        inner.nodes.push_back(identity);
        graph.outputs.push_back(inner_value(name, t.dtype, t.axes.size()));
    };
    for (const Term &t : after) result(t);
    for (size_t p = 0; p < after.size(); p++) result(inclusive ? after[p] : spread(before[p], axes[p], inner));
    graph.nodes = std::move(inner.nodes);

    std::vector<std::string> all = initial;
    all.insert(all.end(), given.begin(), given.end());
    std::vector<Attribute> about = {integer_attribute("num_scan_inputs", static_cast<int64_t>(given.size())),
                                    graph_attribute("body", std::move(graph))};
    const std::vector<std::string> made = body.several("Scan", all, attributes(about), 2 * after.size());
    Sequence sequence;
    for (size_t p = 0; p < after.size(); p++) {
        sequence.last.push_back({made[p], after[p].dtype, axes[p]});
        std::vector<std::string> stacked = over;
        stacked.insert(stacked.end(), axes[p].begin(), axes[p].end());
        const Term each{made[after.size() + p], after[p].dtype, stacked};
        sequence.each.push_back(backward ? Term{reversed(each, body), each.dtype, stacked} : each);
    }
    return sequence;
}

void FunctionMaker::scan_stage(const Stage &stage, const Scan &scan) {
    Place at{top_};
    std::vector<Term> inputs, parts;
    for (const Expr &e : scan.inputs) inputs.push_back(value(e, at));
    const Monoid sum = sum_monoid(scan.monoid.parts[0].identity.type);
    const bool adds = scan.monoid.parts.size() == 1 && scan.monoid.inputs == sum.inputs && equal(scan.monoid.step[0], sum.step[0]) &&
                      sum.parts[0].identity.type != DType::boolean;
    const bool backward = scan.direction == ScanDirection::backward;
    if (adds && !scan.segments.defined()) {
        std::vector<std::string> axes = inputs[0].axes;
        if (std::find(axes.begin(), axes.end(), scan.dim) == axes.end()) axes.push_back(scan.dim);
        const Term x = spread(inputs[0], in_order(axes), top_);
        const auto axis = std::find(x.axes.begin(), x.axes.end(), scan.dim) - x.axes.begin();
        const std::string y =
            top_.one("CumSum", {x.name, top_.integer(axis)},
                     attributes({integer_attribute("exclusive", scan.inclusive ? 0 : 1), integer_attribute("reverse", backward ? 1 : 0)}));
        parts = {{y, x.dtype, x.axes}};
    } else {
        std::vector<std::string> rest = stage.dims;
        rest.erase(std::remove(rest.begin(), rest.end(), scan.dim), rest.end());
        const Term begins = scan.segments.defined() ? value(scan.segments, at) : Term{};
        parts = stepped(scan.monoid, inputs, {scan.dim}, {}, begins, rest, backward, scan.inclusive, top_).each;
    }
    const std::vector<std::string> names = names_of_results(stage);
    for (const Tensor &t : results_of(stage))
        keep(t, parts.at(static_cast<size_t>(std::find(names.begin(), names.end(), t.name) - names.begin())), at);
}

}  // namespace tessera::onnx

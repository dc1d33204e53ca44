// The part of algorithm.h that puts callees in the place of their calls.
#include <algorithm>
#include <cmath>
#include <functional>

#include "algorithms/ir/algorithm.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

std::string name_of_result(const Call &call, const std::string &output) {
    auto own = call.results.find(output);
    if (own != call.results.end()) return own->second;
    return call.scope.empty() ? output : call.scope + "." + output;
}

Algorithm renamed(const Call &call, const KeepsCall &keeps) {
    auto scoped = [&](const std::string &n) { return call.scope.empty() ? n : call.scope + "." + n; };
    Algorithm callee = inline_calls(*call.callee, [&](const std::string &scope) { return keeps(scoped(scope)); });
    std::map<std::string, std::string> dim_names, tensor_names = call.tensors;
    for (const Dim &d : callee.dims) {
        auto it = call.dims.find(d.name);
        dim_names[d.name] = it != call.dims.end() ? it->second : scoped(d.name);
    }
    for (const Tensor &t : callee.tensors)
        if (!tensor_names.count(t.name)) tensor_names[t.name] = scoped(t.name);
    for (const Stage &stage : callee.stages())
        for (const Tensor &t : results_of(stage)) tensor_names[t.name] = scoped(t.name);
    for (const Call &inner : callee.calls())
        for (const Tensor &t : results_of(inner)) tensor_names[t.name] = scoped(t.name);
    for (const std::string &output : call.callee->outputs) tensor_names[output] = name_of_result(call, output);
    auto rename_dims = [&](std::vector<std::string> &names) {
        for (std::string &n : names) n = dim_names.at(n);
    };
    auto rename = [&](const Expr &root) {
        return rewrite(root, [&](const Expr &e) -> Expr {
            if (e.kind() == ExprKind::variable) return dim_names.count(e->name) ? variable(dim_names.at(e->name)) : Expr();
            if (e.kind() == ExprKind::extent) return extent(dim_names.at(e->name));
            if (e.kind() == ExprKind::parameter) return call.parameters.at(e->name);
            if (e.kind() != ExprKind::load) return {};
            return load_of(tensor_names.at(e->name), e);
        });
    };
    auto rename_monoid = [&](Monoid &m) {
        for (Part &p : m.parts) rename_dims(p.dims);
        for (BatchPass &p : m.batch) rename_dims(p.dims);
    };
    callee = map_expressions(std::move(callee), rename);
    for (Dim &d : callee.dims) {
        if (!d.equals.empty()) d.equals = dim_names.at(d.equals);
        d.name = dim_names.at(d.name);
    }
    for (Tensor &t : callee.tensors) t.name = tensor_names.at(t.name), rename_dims(t.dims);
    for (Stage &stage : callee.stages()) {
        std::vector<std::string> results = names_of_results(stage);
        for (std::string &result : results)
            if (!result.empty()) result = tensor_names.at(result);
        stage.name = scoped(stage.name);
        if (!stage.results.empty() || results != names_of_results(stage)) stage.results = std::move(results);
        rename_dims(stage.dims);
        std::visit(Overloaded{
                       [&](Map &b) {
                           for (Value &v : b.values)
                               if (v.to) v.to->state = tensor_names.at(v.to->state);
                       },
                       [&](Reduce &b) { rename_dims(b.dims), rename_monoid(b.monoid); },
                       [&](Scan &b) { b.dim = dim_names.at(b.dim), rename_monoid(b.monoid); },
                   },
                   stage.body);
    }
    for (Call &inner : callee.calls()) {
        // A name that the caller gave to what is an output here too.
        for (const std::string &output : inner.callee->outputs)
            if (const std::string own = name_of_result(inner, output); tensor_names.at(own) != scoped(own)) inner.results[output] = own;
        inner.scope = scoped(inner.scope);
        for (auto &[name, dim] : inner.dims) dim = dim_names.at(dim);
        for (auto &[name, tensor] : inner.tensors) tensor = tensor_names.at(tensor);
        for (auto &[output, result] : inner.results) result = tensor_names.at(result);
    }
    for (std::string &name : callee.outputs) name = tensor_names.at(name);
    return callee;
}

static const KeepsCall keeps_none = [](const std::string &) { return false; };

std::vector<Tensor> results_of(const Call &call) {
    Algorithm callee = renamed(call, keeps_none);
    std::vector<Tensor> results;
    for (const std::string &output : callee.outputs)
        for (const Stage &stage : callee.stages())
            for (const Tensor &t : results_of(stage))
                if (t.name == output) results.push_back(t);
    return results;
}

Algorithm inline_calls(const Algorithm &algorithm) { return inline_calls(algorithm, keeps_none); }

Algorithm inline_calls(const Algorithm &algorithm, const KeepsCall &keeps) {
    Algorithm result = algorithm;
    result.steps.clear();
    auto take = [&](const Algorithm &callee) {
        for (const Dim &d : callee.dims)
            if (!result.find_dim(d.name)) result.dims.push_back(d);
        result.updates_state |= callee.updates_state;
    };
    auto inline_one = [&](const Call &call) {
        Algorithm callee = renamed(call, keeps);
        take(callee);
        std::set<std::string> bound;  // to tensors of the caller, which may be results of other calls
        for (auto &[name, tensor] : call.tensors) bound.insert(tensor);
        for (const Tensor &t : callee.tensors)
            if (!bound.count(t.name) && !result.find_tensor(t.name)) result.tensors.push_back(t);
        std::move(callee.steps.begin(), callee.steps.end(), std::back_inserter(result.steps));
    };
    for (const Step &step : algorithm.steps) {
        const auto *call = std::get_if<Call>(&step);
        if (call && !keeps(call->scope)) {
            inline_one(*call);
            continue;
        }
        if (call) take(renamed(*call, keeps_none));
        result.steps.push_back(step);
    }
    return result;
}

}  // namespace tessera

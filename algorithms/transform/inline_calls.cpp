#include "algorithms/transform/inline_calls.h"

#include <algorithm>
#include <cmath>

#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

// The load with what is bound to its tensor in place of that.
static Expr load_through(const View &view, const Expr &e) {
    if (view.index.empty()) return load_of(view.tensor, e);
    const size_t rank = e->args.size() - (e->guarded ? 2 : 0);
    const std::vector<Expr> index = index_in(view, {e->args.begin(), e->args.begin() + static_cast<std::ptrdiff_t>(rank)});
    return e->guarded ? load_or(view.tensor, e.type(), index, e->args[rank], e->args[rank + 1]) : load(view.tensor, e.type(), index);
}

// A view of what is itself a view; its index has the caller's names already. `argument` is what it is bound to.
static View view_through(const View &outer, const View &inner, const Tensor &argument) {
    if (outer.index.empty()) return {outer.tensor, inner.index};
    std::vector<Expr> at = inner.index;
    if (at.empty())
        for (size_t i = 0; i < argument.dims.size(); i++) at.push_back(axis(i));
    return {outer.tensor, index_in(outer, at)};
}

Algorithm renamed(const Call &call, const KeepsCall &keeps) {
    auto scoped = [&](const std::string &n) { return call.scope.empty() ? n : call.scope + "." + n; };
    Algorithm callee = inline_calls(*call.callee, [&](const std::string &scope) { return keeps(scoped(scope)); });
    std::map<std::string, std::string> dim_names, tensor_names;
    for (const auto &[name, view] : call.tensors) tensor_names[name] = view.tensor;
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
            const auto bound = call.tensors.find(e->name);
            return bound == call.tensors.end() ? load_of(tensor_names.at(e->name), e) : load_through(bound->second, e);
        });
    };
    auto write = [&](const Write &to) {
        const auto bound = call.tensors.find(to.state);
        return bound == call.tensors.end() ? Write{tensor_names.at(to.state), to.index}
                                           : Write{bound->second.tensor, index_in(bound->second, to.index)};
    };
    auto rename_monoid = [&](Monoid &m) {
        for (Part &p : m.parts) rename_dims(p.dims);
        for (BatchPass &p : m.batch) rename_dims(p.dims);
    };
    callee = map_expressions(std::move(callee), rename);
    callee.rule = nullptr;  // it knows the callee's names
    for (Dim &d : callee.dims) {
        if (!d.equals.empty()) d.equals = dim_names.at(d.equals);
        d.name = dim_names.at(d.name);
    }
    for (Tensor &t : callee.tensors) t.name = tensor_names.at(t.name), rename_dims(t.dims);
    for (const std::string &name : std::exchange(callee.large, {})) callee.large.insert(tensor_names.at(name));
    for (Stage &stage : callee.stages()) {
        std::vector<std::string> results = names_of_results(stage);
        for (std::string &result : results)
            if (!result.empty()) result = tensor_names.at(result);
        stage.name = scoped(stage.name);
        if (!stage.results.empty() || results != names_of_results(stage)) stage.results = std::move(results);
        rename_dims(stage.dims);
        for (Rows &rows : stage.rows) rows.dim = dim_names.at(rows.dim), rows.flat = dim_names.at(rows.flat);
        std::visit(Overloaded{
                       [&](Map &b) {
                           for (Value &v : b.values)
                               if (v.to) v.to = write(*v.to);
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
        for (auto &[name, view] : inner.tensors) {
            const auto bound = call.tensors.find(view.tensor);
            if (bound == call.tensors.end()) view.tensor = tensor_names.at(view.tensor);
            else view = view_through(bound->second, view, *inner.callee->find_tensor(name));
        }
        if (inner.repeat) inner.repeat->dim = dim_names.at(inner.repeat->dim);
        for (auto &[output, result] : inner.results) result = tensor_names.at(result);
    }
    for (std::string &name : callee.outputs) name = tensor_names.at(name);
    return callee;
}

static const KeepsCall keeps_none = [](const std::string &) { return false; };

static void add_scopes(const Algorithm &algorithm, const std::string &prefix, const std::function<bool(const Call &)> &which,
                       std::set<std::string> &scopes) {
    for (const Call &call : algorithm.calls()) {
        if (which(call)) scopes.insert(prefix + call.scope);
        add_scopes(*call.callee, prefix + call.scope + ".", which, scopes);
    }
}

KeepsCall keeps_calls(const Algorithm &algorithm, const std::function<bool(const Call &)> &which) {
    std::set<std::string> scopes;
    add_scopes(algorithm, "", which, scopes);
    return [scopes](const std::string &scope) { return scopes.count(scope) > 0; };
}

KeepsCall keeps_repeats(const Algorithm &algorithm) {
    return keeps_calls(algorithm, [](const Call &call) { return call.repeat.has_value(); });
}

Algorithm inline_calls(const Algorithm &algorithm) { return inline_calls(algorithm, keeps_none); }

static const std::string of_round = ".round";

// The first round of a call by itself: what it takes are inputs and states of its own, named scope + "." + the callee's tensor, and what it
// gives are outputs, named like the result with ".round" behind.
static Call one_round(Call call) {
    for (auto &[name, value] : call.parameters) value = substitute(value, {{call.repeat->dim, Expr(0)}});
    call.tensors.clear();
    for (const std::string &output : call.callee->outputs) call.results[output] = name_of_result(call, output) + of_round;
    return call;
}

Algorithm inline_calls(const Algorithm &algorithm, const KeepsCall &keeps) {
    Algorithm result = algorithm;
    result.steps.clear();
    auto take = [&](const Algorithm &callee) {
        for (const Dim &d : callee.dims)
            if (!result.find_dim(d.name)) result.dims.push_back(d);
        result.updates_state |= callee.updates_state, result.draws |= callee.draws;
    };
    auto inline_one = [&](const Call &given) {
        const Call call = given.repeat ? one_round(given) : given;
        Algorithm callee = renamed(call, keeps);
        take(callee);
        std::set<std::string> bound;  // to tensors of the caller, which may be results of other calls
        for (auto &[name, view] : call.tensors) bound.insert(view.tensor);
        for (const Tensor &t : callee.tensors)
            if (!bound.count(t.name) && !result.find_tensor(t.name)) result.tensors.push_back(t);
        for (const std::string &output : callee.outputs)
            if (output.ends_with(of_round)) result.outputs.push_back(output);
        if (given.repeat)
            for (const Tensor &t : results_of(given)) result.tensors.push_back(t);
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
    std::erase_if(result.outputs, [&](const std::string &name) { return result.find_tensor(name) != nullptr; });  // all rounds' results
    return result;
}

}  // namespace tessera

// The part of algorithm.h that says what a call is to its caller.
#include <algorithm>

#include "algorithms/ir/algorithm.h"

namespace tessera {

std::string path_through_calls(const Algorithm &algorithm, const std::string &dim, const std::string &scope) {
    std::string text, inside = dim, calls = scope;
    const Algorithm *a = &algorithm;
    for (bool goes_on = true; goes_on;) {
        goes_on = false;
        for (const Call &call : a->calls()) {
            const auto bound = std::find_if(call.dims.begin(), call.dims.end(), [&](const auto &d) { return d.second == inside; });
            if (bound == call.dims.end()) continue;
            calls += (calls.empty() ? "" : ".") + call.scope;
            text += text.empty() ? " '" + dim + "' of " + a->name + " is '" : ", which is '";
            inside = bound->first, a = call.callee.get(), goes_on = true;
            text += inside + "' of " + a->name + " (call " + calls + ")";
            break;
        }
    }
    return text.empty() ? "" : text + ".";
}

std::string name_of_result(const Call &call, const std::string &output) {
    auto own = call.results.find(output);
    if (own != call.results.end()) return own->second;
    return call.scope.empty() ? output : call.scope + "." + output;
}

Expr axis(size_t number) { return variable("%" + std::to_string(number)); }

bool operator==(const View &a, const View &b) {
    return a.tensor == b.tensor && std::equal(a.index.begin(), a.index.end(), b.index.begin(), b.index.end(),
                                              [](const Expr &x, const Expr &y) { return equal(x, y); });
}

std::vector<Expr> index_in(const View &view, const std::vector<Expr> &at) {
    if (view.index.empty()) return at;
    std::map<std::string, Expr> axes;
    for (size_t i = 0; i < at.size(); i++) axes[axis(i)->name] = at[i];
    std::vector<Expr> index;
    for (const Expr &e : view.index) index.push_back(substitute(e, axes));
    return index;
}

// One by one: a program of calls of calls would otherwise be walked as often as it has paths.
static std::optional<Tensor> result_of(const Call &call, const std::string &output);

static std::optional<Tensor> defined_by(const Stage &stage, const std::string &name) {
    for (Tensor &t : results_of(stage))
        if (t.name == name) return std::move(t);
    return std::nullopt;
}

static std::optional<Tensor> defined_by(const Call &call, const std::string &name) {
    for (const std::string &output : call.callee->outputs)
        if (name_of_result(call, output) == name) return result_of(call, output);
    return std::nullopt;
}

static std::optional<Tensor> result_of(const Call &call, const std::string &output) {
    std::optional<Tensor> t;
    for (const Step &step : call.callee->steps)
        if (!t) t = std::visit([&](const auto &s) { return defined_by(s, output); }, step);
    if (!t) return t;
    for (std::string &d : t->dims) {
        auto bound = call.dims.find(d);
        d = bound != call.dims.end() ? bound->second : call.scope.empty() ? d : call.scope + "." + d;
    }
    if (call.repeat && call.repeat->stacked.count(output)) t->dims.insert(t->dims.begin(), call.repeat->dim);
    t->name = name_of_result(call, output);
    return t;
}

std::vector<Tensor> results_of(const Call &call) {
    std::vector<Tensor> results;
    for (const std::string &output : call.callee->outputs)
        if (std::optional<Tensor> t = result_of(call, output)) results.push_back(std::move(*t));
    return results;
}

}  // namespace tessera

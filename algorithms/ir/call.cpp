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

static std::vector<Tensor> results_of(const Step &step) {
    return std::visit([](const auto &s) { return results_of(s); }, step);
}

std::vector<Tensor> results_of(const Call &call) {
    std::vector<Tensor> results;
    for (const std::string &output : call.callee->outputs)
        for (const Step &step : call.callee->steps)
            for (Tensor &t : results_of(step)) {
                if (t.name != output) continue;
                for (std::string &d : t.dims) {
                    auto bound = call.dims.find(d);
                    d = bound != call.dims.end() ? bound->second : call.scope.empty() ? d : call.scope + "." + d;
                }
                if (call.repeat && call.repeat->stacked.count(output)) t.dims.insert(t.dims.begin(), call.repeat->dim);
                t.name = name_of_result(call, output);
                results.push_back(std::move(t));
            }
    return results;
}

}  // namespace tessera

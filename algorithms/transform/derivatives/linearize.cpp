#include "algorithms/transform/derivatives/linearize.h"

#include "algorithms/transform/derivatives/fold_terms.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera::differentiation {

static LinearStage linearized_map(const LinearScope &scope, const Stage &stage, const Map &map) {
    LinearStage linear;
    const std::vector<Expr> alone = values_alone(map);
    const std::vector<std::string> names = names_of_results(stage);
    for (size_t i = 0; i < alone.size(); i++) {
        if (names[i].empty() || !scope.active.tensors.count(names[i])) continue;
        LinearResult result{result_named(stage, names[i]), stage.dims, {}, {}, {}, {}, {}};
        CoefficientRequest request = request_for(scope, stage, alone[i]);
        request.result = own_element(result.result);
        result.terms = terms_of(request, false);
        if (!result.terms.empty()) linear.results.push_back(std::move(result));
    }
    return linear;
}

LinearStage linearized(const LinearScope &scope, const Stage &stage) {
    bool is_active = false;
    for (const Tensor &t : results_of(stage)) is_active |= scope.active.tensors.count(t.name) > 0;
    for (const Write *w : writes_of(stage))
        if (scope.active.tensors.count(w->state))
            throw UserError("derivative.write",
                            scope.algorithm.name + "." + stage.name + ": it writes '" + w->state +
                                "', on which the derivative depends; expected states to be read only",
                            "Give the new values as an output, and update the state in an algorithm that calls this one; or stop the "
                            "derivative before (stop_gradient).")
                .about(stage.name, stage.span);
    if (!is_active) return {};
    return std::visit(Overloaded{
                          [&](const Map &m) { return linearized_map(scope, stage, m); },
                          [&](const Reduce &r) { return linearized_reduce(scope, stage, r); },
                          [&](const Scan &s) { return linearized_scan(scope, stage, s); },
                      },
                      stage.body);
}

}  // namespace tessera::differentiation

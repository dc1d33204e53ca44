#include "compiler/compile/specialize.h"

#include <algorithm>
#include <numeric>

#include "algorithms/index/bounds.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"

namespace tessera {

static void constrain(Dim &dim, const Condition &c) {
    if (c.modulus) {
        const bool divides = (c.bound == 0 && (c.relation == "==" || c.relation == "<=")) || (c.bound == 1 && c.relation == "<");
        if (divides && dim.multiple_of <= INT32_MAX && c.modulus <= INT32_MAX) dim.multiple_of = std::lcm(dim.multiple_of, c.modulus);
        return;
    }
    if (c.relation == "<=" || c.relation == "==") dim.max = std::min(dim.max, c.bound);
    if (c.relation == "<") dim.max = std::min(dim.max, c.bound - 1);
    if (c.relation == ">=" || c.relation == "==") dim.min = std::max(dim.min, c.bound);
    if (c.relation == ">") dim.min = std::max(dim.min, c.bound + 1);
}

Algorithm constrained(const Algorithm &algorithm, const std::vector<Condition> &when) {
    Algorithm result = algorithm;
    const Bounds facts(algorithm.dims, algorithm.parameters);
    for (const Condition &c : when) {
        const Dim *about = c.dim.empty() ? nullptr : algorithm.find_dim(c.dim);
        if (!about || about->kind != DimKind::symbolic) continue;
        for (Dim &dim : result.dims)
            if (dim.kind == DimKind::symbolic && facts.representative(dim.name) == facts.representative(about->name)) constrain(dim, c);
    }
    for (Dim &dim : result.dims)
        if (dim.kind == DimKind::symbolic && (dim.max < 1 || dim.min > dim.max)) dim = algorithm.dim(dim.name);
    return result;
}

TileProgram lower_variant(const Algorithm &algorithm, const std::vector<Condition> &when, const KnobsByStage &stages, const Target &target,
                          const LoweringObserver &observer, FunctionForm form) {
    if (when.empty()) return lower(algorithm, stages, target, observer, form);
    HeldSteps steps(observer);
    TileProgram program = lower(constrained(algorithm, when), stages, target, steps.observer(), form);
    if (!is_proved(program)) return lower(algorithm, stages, target, observer, form);
    steps.show();
    return program;
}

}  // namespace tessera

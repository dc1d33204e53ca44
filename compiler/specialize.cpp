#include "compiler/specialize.h"

#include <algorithm>
#include <numeric>

#include "algorithms/error.h"
#include "compiler/lower.h"

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

// Of dims that are declared equal, the one that the others name.
static const std::string &representative(const Algorithm &algorithm, const Dim &dim) {
    const Dim *d = &dim;
    while (!d->equals.empty()) d = &algorithm.dim(d->equals);
    return d->name;
}

Algorithm constrained(const Algorithm &algorithm, const std::vector<Condition> &when) {
    Algorithm result = algorithm;
    for (const Condition &c : when) {
        const Dim *about = c.dim.empty() ? nullptr : algorithm.find_dim(c.dim);
        if (!about || about->kind != DimKind::symbolic) continue;
        for (Dim &dim : result.dims)
            if (dim.kind == DimKind::symbolic && representative(algorithm, dim) == representative(algorithm, *about)) constrain(dim, c);
    }
    return result;
}

TileProgram lower_variant(const Algorithm &algorithm, const std::vector<Condition> &when, const std::map<std::string, Knobs> &stages, const Target &target) {
    const Algorithm known = constrained(algorithm, when);
    std::map<std::string, int64_t> extents;
    for (const Dim &d : known.dims)
        if (d.kind == DimKind::symbolic && d.min == d.max && d.min % d.multiple_of == 0) extents[d.name] = d.min;
    TileProgram program = lower(bind_extents(known, extents), stages, target);
    for (Dim &d : program.dims)
        if (extents.count(d.name)) d = known.dim(d.name);
    return program;
}

}  // namespace tessera

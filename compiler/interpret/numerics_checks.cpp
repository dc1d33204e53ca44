#include "compiler/interpret/numerics_checks.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "algorithms/transform/inline_calls.h"
#include "compiler/interpret/range_analysis.h"
#include "support/text/error.h"

namespace tessera {

namespace {

Extents largest_extents(const Algorithm &a) {
    Extents extents;
    for (const Dim &d : a.dims)
        if (d.kind == DimKind::symbolic && d.max < Dim().max) extents[d.name] = d.max;
    return extents;
}

std::map<std::string, RealInterval> given_ranges(const Algorithm &a) {
    std::map<std::string, RealInterval> ranges;
    for (const auto &[name, range] : a.stated_ranges) ranges[name] = {range.first, range.second};
    for (const Parameter &p : a.parameters)
        if (p.range && is_float(p.dtype)) ranges[p.name] = {p.range->least.real, p.range->most.real};
    return ranges;
}

// Folds of any length have no bound.
std::string remedy(const Algorithm &a) {
    std::set<std::string> open;
    for (const Stage &s : a.stages())
        for (const std::string &d : folded_dims(s))
            if (a.dim(d).kind == DimKind::symbolic && a.dim(d).max == Dim().max) open.insert(d);
    const std::string dims = open.empty() ? "" : ", give " + join({open.begin(), open.end()}) + " a maximum or a fixed extent";
    return " State narrower ranges of inputs" + dims + ", or ask for less.";
}

// The stage and those that its values are made of.
std::set<std::string> made_of(const Algorithm &a, const std::string &name) {
    std::set<std::string> all;
    std::vector<std::string> open = {name};
    while (!open.empty()) {
        const std::string stage = open.back();
        open.pop_back();
        if (!all.insert(stage).second) continue;
        for (const Expr &e : expressions_of(*a.find_stage(stage)))
            walk(e, [&](const Expr &n) {
                if (n.kind() != ExprKind::load) return;
                if (const Stage *from = defining_stage(a, n->name)) open.push_back(from->name);
            });
    }
    return all;
}

// A unit in the last place of the largest value.
double last_place(DType type, double magnitude) {
    if (magnitude == 0) return least_subnormal(type);
    return std::max(2 * unit_roundoff(type) * std::exp2(std::floor(std::log2(magnitude))), least_subnormal(type));
}

}  // namespace

void check_numerics(const Algorithm &bound) {
    if (bound.checks.empty()) return;
    for (const Call &call : bound.calls())
        if (call.repeat)
            throw UserError("numerics.repeat", bound.name + ": its stages' numerics are to be checked, each once, and call '" + call.scope +
                                                   "' repeats. Ask it of the callee.");
    const Algorithm whole = inline_calls(bound);
    const std::vector<StageRange> ranges = analyse_ranges(whole, largest_extents(whole), given_ranges(whole));
    for (const auto &[name, check] : bound.checks) {
        const auto at = std::find_if(ranges.begin(), ranges.end(), [&, n = name](const StageRange &s) { return s.stage == n; });
        require(at != ranges.end(), "a checked stage is among those that are analysed");
        const std::string subject = bound.name + "." + name + ": ";
        // Where it, or what it is made of, is lost.
        const std::set<std::string> needed = made_of(whole, name);
        const auto trouble =
            std::find_if(ranges.begin(), at + 1, [&](const StageRange &s) { return !s.trouble.empty() && needed.count(s.stage); });
        const KnownRange &known = at->range;
        if (check.stable && (trouble <= at || known.is_lost || known.has_lowest || known.has_highest))
            throw UserError("numerics.unstable",
                            subject + "expected that nothing overflows or is no number; " +
                                (trouble <= at ? "stage '" + trouble->stage + "' " + trouble->trouble : "it may hold an infinity") + "." +
                                remedy(whole));
        const bool is_known = !known.is_lost && std::isfinite(known.values.lo) && std::isfinite(known.values.hi);
        const std::string lies =
            is_known ? fmt::format("it may lie in {:.6g} ..= {:.6g}", known.values.lo, known.values.hi) : "where it lies is not known";
        if (check.bounded && (!is_known || known.values.lo < check.bounded->first || known.values.hi > check.bounded->second))
            throw UserError("numerics.unbounded", fmt::format("{}expected values in {:.6g} ..= {:.6g}; {}.{}", subject,
                                                              check.bounded->first, check.bounded->second, lies, remedy(whole)));
        if (!check.loss) continue;
        const DType type = results_of(*whole.find_stage(name)).front().dtype;
        const double loss = is_known ? known.error / last_place(type, known.values.magnitude()) : no_bound;
        if (!(loss <= *check.loss))
            throw UserError(
                "numerics.loss",
                fmt::format(
                    "{}expected to lose at most {:.6g} units in the last place of its largest value; {}.{}", subject, *check.loss,
                    std::isfinite(loss) ? fmt::format("rounding and cancellation may take {:.6g}", loss) : "no bound of its error is known",
                    remedy(whole)));
    }
}

}  // namespace tessera

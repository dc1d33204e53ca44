#include "compiler/compile/variants.h"

#include <algorithm>
#include <optional>

#include "schedules/knobs/condition.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera {

// What is left of the conditions when the kernel runs; nothing where one of them never holds.
static std::optional<std::vector<Condition>> undecided(const std::vector<Condition> &when, const Algorithm &bound, const Target &target) {
    std::vector<Condition> left;
    for (const Condition &c : when) {
        const Dim *dim = c.dim.empty() ? nullptr : bound.find_dim(c.dim);
        if (dim && dim->kind != DimKind::fixed) left.push_back(c);
        else if (dim ? !holds(c, dim->value) : !target.has(c.feature)) return {};
    }
    return left;
}

std::vector<ApplyingVariant> applying_variants(const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target) {
    std::vector<ApplyingVariant> all;
    for (size_t v = 0; v < schedule.variants.size(); v++) {
        const auto when = undecided(schedule.variants[v].when, bound, target);
        if (!when) continue;
        all.push_back({static_cast<int>(v), &schedule.variants[v].stages, *when});
        if (when->empty()) return all;
    }
    all.push_back({-1, &schedule.stages, {}});
    return all;
}

static bool all_hold(const std::vector<Condition> &when, const Extents &extents) {
    return std::all_of(when.begin(), when.end(), [&](const Condition &c) { return holds(c, extents.at(c.dim)); });
}

KnobsByStage knobs_for(const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target, const Extents &extents) {
    for (const ApplyingVariant &variant : applying_variants(schedule, bound, target))
        if (all_hold(variant.when, extents)) return *variant.stages;
    throw InternalError("the last variant of a schedule has no condition");
}

const KernelVariant &variant_for(const Kernel &kernel, const Extents &extents) {
    for (const KernelVariant &variant : kernel.variants)
        if (all_hold(variant.when, extents)) return variant;
    throw InternalError("the last variant of a kernel has no condition");
}

std::string condition_text(const std::vector<Condition> &when) {
    std::vector<std::string> all;
    for (const Condition &c : when) all.push_back(to_string(c));
    return all.empty() ? "otherwise" : join(all, " and ");
}

}  // namespace tessera

#include "generators/kernel/lower_variants.h"

#include <algorithm>
#include <optional>

#include "algorithms/transform/inline_calls.h"
#include "compiler/check/code_size.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/specialize.h"
#include "compiler/rewrite/split.h"
#include "schedules/check/check.h"
#include "schedules/knobs/condition.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera {

std::string condition_text(const std::vector<Condition> &when) {
    std::vector<std::string> all;
    for (const Condition &c : when) all.push_back(to_string(c));
    return all.empty() ? "otherwise" : join(all, " and ");
}

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

// "w[K, N] packed as N/48, K, N%48", or "nothing": what a caller has to pack.
static std::string packed_operands(const TileProgram &program) {
    std::vector<std::string> all;
    for (const Argument &a : program.arguments)
        if (a.packed) all.push_back(to_string(*a.packed));
    return all.empty() ? "nothing" : join(all, " and ");
}

// A caller cannot know which variant runs, so all take the same.
static void check_packed_alike(const ResolvedSchedule &schedule, const Kernel &kernel) {
    const KernelVariant &first = kernel.variants.front(), &last = kernel.variants.back();
    const std::string one = packed_operands(first.program), other = packed_operands(last.program);
    if (one == other) return;
    throw UserError("schedule.prepack", schedule.name +
                                            ": every variant must take the same operands packed ahead of time, in one layout; where " +
                                            condition_text(first.when) + " it takes " + one + ", " +
                                            (last.when.empty() ? "otherwise " : "where " + condition_text(last.when) + " ") + other +
                                            ". State one pack in all of them, or delete the variants (null).");
}

// The knob that an error of lowering is about, where the stage states it.
static std::string knob_of(const std::string &id, const Knobs &k) {
    const std::pair<const char *, bool> stated[] = {{"parallel", !k.parallel.empty()},
                                                    {"instruction", k.instruction.has_value()},
                                                    {"place", k.place.has_value()},
                                                    {"split", !k.split.empty()}};
    for (const auto &[knob, is_stated] : stated)
        if (is_stated && id == std::string("schedule.") + knob) return knob;
    return "";
}

// Lowering knows stages and knobs, not whose they are: what it refuses ("<stage>: …") is said with the schedule's name and place.
template <typename Work>
static void with_place(const ResolvedSchedule &schedule, int variant, const KnobsByStage &stages, Work work) {
    try {
        work();
    } catch (const UserError &error) {
        const std::string message = error.message();
        if (!error.id().starts_with("schedule.") || schedule.name.empty() || message.starts_with("schedule '")) throw;
        FieldPlace where = place_of(schedule, variant);
        if (const auto stage = stages.find(message.substr(0, message.find(": "))); stage != stages.end()) {
            where = where / "stages" / stage->first;
            if (const std::string knob = knob_of(error.id(), stage->second); !knob.empty()) where = where / knob;
        }
        where.fail(error.id(), message);
    }
}

Kernel lower_variants(const std::string &name, const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target,
                      std::vector<std::string> *notes, const ObserveVariant &observe) {
    Kernel kernel{name, {}};
    auto lower_one = [&](int variant, const KnobsByStage &stages, const std::vector<Condition> &when) {
        with_place(schedule, variant, stages, [&] {
            check_stages(schedule, variant, apply_splits(inline_calls(bound), stages));
            const LoweringObserver observer = observe ? observe(when) : LoweringObserver();
            kernel.variants.push_back({when, lower_variant(bound, when, stages, target, observer)});
            for (const std::string &note : check_code_size(kernel.variants.back().program, stages, target))
                if (notes) notes->push_back(note);
        });
        check_packed_alike(schedule, kernel);
    };
    for (const ApplyingVariant &variant : applying_variants(schedule, bound, target))
        lower_one(variant.number, *variant.stages, variant.when);
    return kernel;
}

// The knobs of the variant that is tried first; all variants pack alike.
std::vector<Kernel> lower_packings_of(const Kernel &kernel, const ResolvedSchedule &schedule, const Algorithm &bound,
                                      const Target &target) {
    std::vector<Kernel> kernels;
    if (packed_operands(kernel.general()) == "nothing") return kernels;
    const ApplyingVariant first = applying_variants(schedule, bound, target).front();
    for (TileProgram &program : lower_packings(bound, *first.stages, target)) {
        const std::string name = kernel.name + program.name.substr(bound.name.size());
        kernels.push_back({name, {{{}, std::move(program)}}});
    }
    return kernels;
}

KnobsByStage knobs_for(const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target, const Extents &extents) {
    for (const ApplyingVariant &variant : applying_variants(schedule, bound, target))
        if (std::all_of(variant.when.begin(), variant.when.end(), [&](const Condition &c) { return holds(c, extents.at(c.dim)); }))
            return *variant.stages;
    throw InternalError("the last variant has no condition");
}

}  // namespace tessera

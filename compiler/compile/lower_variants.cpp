#include "compiler/compile/lower_variants.h"

#include <utility>

#include "algorithms/transform/inline_calls.h"
#include "compiler/check/code_size.h"
#include "compiler/compile/specialize.h"
#include "compiler/compile/variants.h"
#include "compiler/lower/lower.h"
#include "compiler/rewrite/split.h"
#include "schedules/check/check.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera {

std::string packed_operands(const TileProgram &program) {
    std::vector<std::string> all;
    for (const Argument &a : program.arguments)
        if (a.packed) all.push_back(to_string(*a.packed));
    return all.empty() ? "nothing" : join(all, " and ");
}

// A caller cannot know which variant runs, so all take the same.
static void check_packed_alike(const ResolvedSchedule &schedule, const Kernel &kernel) {
    const KernelVariant &first = kernel.variants.front(), &last = kernel.variants.back();
    if (&first == &last) return;
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

LoweredVariants lower_variants(const Algorithm &bound, const ResolvedSchedule &schedule, const Target &target,
                               const ObserveVariant &observe) {
    LoweredVariants lowered{{bound.name, {}}, {}};
    const Algorithm inlined = inline_calls(bound);
    for (const ApplyingVariant &variant : applying_variants(schedule, bound, target)) {
        const KnobsByStage &stages = *variant.stages;
        with_place(schedule, variant.number, stages, [&] {
            check_stages(schedule, variant.number, apply_splits(inlined, stages));
            const LoweringObserver observer = observe ? observe(variant.when) : LoweringObserver();
            lowered.kernel.variants.push_back({variant.when, lower_variant(bound, variant.when, stages, target, observer)});
            for (std::string &note : check_code_size(lowered.kernel.general(), stages, target))
                lowered.notes.push_back({"schedule.register-tile", std::move(note)});
        });
        check_packed_alike(schedule, lowered.kernel);
    }
    return lowered;
}

TileProgram lower_candidate(const Algorithm &bound, const KnobsByStage &stages, const Target &target,
                            std::optional<int64_t> max_proof_steps) {
    ResolvedSchedule schedule;
    schedule.name = "candidate";
    schedule.stages = stages;
    check(schedule, bound);
    TileProgram program;
    with_place(schedule, -1, stages, [&] {
        check_stages(schedule, -1, apply_splits(inline_calls(bound), stages));
        program = lower(bound, stages, target, {}, FunctionForm::defined, max_proof_steps);
        check_code_size(program, stages, target);
    });
    return program;
}

}  // namespace tessera

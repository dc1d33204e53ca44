// The variants of a schedule, lowered to tile programs. Conditions that the target or a fixed dim decides are decided here.
#pragma once
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "compiler/lower/lowering_steps.h"
#include "compiler/tile/kernel.h"
#include "schedules/artifact/merge.h"
#include "schedules/target/target.h"

namespace tessera {

using ObserveVariant = std::function<LoweringObserver(const std::vector<Condition> &when)>;

// A variant of a schedule that may run: its conditions that the target and the fixed dims leave open.
struct ApplyingVariant {
    int number = -1;  // of the schedule's variants; -1: its own stages
    const KnobsByStage *stages = nullptr;
    std::vector<Condition> when;
};
// In the order in which they are tried; the last one has no condition. They point into the schedule.
std::vector<ApplyingVariant> applying_variants(const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target);

// Checks the schedule against `bound`, the algorithm with its fixed dims, and lowers it variant by variant; the last one has no condition.
// UserErrors of checks and of lowering; schedule.register-tile before anybody compiles what would take minutes; schedule.prepack where one
// variant takes an operand packed ahead of time and another does not, or in another layout. `notes` gets what is only
// unwise (code_size.h). `observe` gives the observer while the variant with these conditions is lowered.
Kernel lower_variants(const std::string &name, const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target,
                      std::vector<std::string> *notes = nullptr, const ObserveVariant &observe = {});

// What packs the operands that `kernel` takes packed, one kernel each: "<kernel>_pack_<operand>".
std::vector<Kernel> lower_packings_of(const Kernel &kernel, const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target);

// The schedule's knobs for these extents: those of the first variant whose conditions hold, or its own.
KnobsByStage knobs_for(const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target, const Extents &extents);

// "M <= 16 and N % 16 == 0", or "otherwise".
std::string condition_text(const std::vector<Condition> &when);

}  // namespace tessera

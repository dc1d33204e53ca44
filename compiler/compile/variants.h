// Which variants of a schedule may run. Conditions that the target or a fixed dim decides are decided here.
#pragma once
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"
#include "compiler/tile/kernel.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// A variant of a schedule that may run: its conditions that the target and the fixed dims leave open.
struct ApplyingVariant {
    int number = -1;  // of the schedule's variants; -1: its own stages
    const KnobsByStage *stages = nullptr;
    std::vector<Condition> when;
};
// In the order in which they are tried; the last one has no condition. They point into the schedule.
std::vector<ApplyingVariant> applying_variants(const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target);

// The schedule's knobs for these extents: those of the first variant whose conditions hold, or its own.
KnobsByStage knobs_for(const ResolvedSchedule &schedule, const Algorithm &bound, const Target &target, const Extents &extents);

// The variant that the library runs for these extents.
const KernelVariant &variant_for(const Kernel &kernel, const Extents &extents);

// "M <= 16 and N % 16 == 0", or "otherwise".
std::string condition_text(const std::vector<Condition> &when);

}  // namespace tessera

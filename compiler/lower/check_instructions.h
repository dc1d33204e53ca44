#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// Every instruction family that the schedule names exists, on this target, for this fold. UserError schedule.instruction.
void check_instructions(const Algorithm &algorithm, const KnobsByStage &stages, const Target &target);

}  // namespace tessera

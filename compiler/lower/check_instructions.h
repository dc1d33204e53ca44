#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// Every instruction family that the schedule names exists, on this target, for this fold of the rewritten `algorithm`, and keeps to the
// policy of the declared one. UserError schedule.instruction.
void check_instructions(const Algorithm &declared, const Algorithm &algorithm, const KnobsByStage &stages, const Target &target);

}  // namespace tessera

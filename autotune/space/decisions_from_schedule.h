// The other way round: from a schedule to the decisions that make it.
#pragma once
#include "autotune/space/decision.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// A Choose that answers each decision as `stages` has it. What the schedule says with no decision, or what no decision can say, is
// lost; what it leaves open, `otherwise` answers.
Choose decisions_from_schedule(const KnobsByStage &stages, const Choose &otherwise);

}  // namespace tessera

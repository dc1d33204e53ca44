// A schedule as one algorithm takes it: with its short forms written out.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// Patterns (pattern.h), then reduction trees (reduction_tree.h), of the schedule and its variants. UserError schedule.pattern.
ResolvedSchedule written_out(const ResolvedSchedule &schedule, const Algorithm &declared);

}  // namespace tessera

// Stages without storage: a rewrite of Algorithm to Algorithm.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// How many operands and operations, without constants, replace the loads of inlined stages in the expressions of `stage`. `sizes`
// has the same number for each inlined stage, with all that is inlined into it.
int64_t inlined_size(const Stage &stage, const Extents &sizes);
// The same plus the stage's own operands and operations.
int64_t whole_size(const Stage &stage, const Extents &sizes);
// The most in one stage. A chain of stages that each read several points of the one before grows exponentially.
constexpr int64_t max_inlined = 20000;

// Substitutes each stage placed `inlined` into its consumers. UserError schedule.inline: only a Map that is no output can be
// inlined, and no stage may grow beyond max_inlined.
Algorithm inline_stages(Algorithm algorithm, const KnobsByStage &stages);

}  // namespace tessera

// Stages without storage: a rewrite of Algorithm to Algorithm.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// Operands and operations, constants aside, that stand in the expressions of `stage` in place of its loads of what is inlined, of which
// `sizes` has how many its own are, with all that is inlined there.
int64_t inlined_size(const Stage &stage, const Extents &sizes);
// The same with the stage's own.
int64_t whole_size(const Stage &stage, const Extents &sizes);
// In one stage: those that read several points of one another grow to the power of how many they are.
constexpr int64_t max_inlined = 20000;

// Substitutes each stage placed `inlined` into its consumers. UserError schedule.inline: only a Map that is no output can be, and no
// stage may grow beyond what anybody would compile.
Algorithm inline_stages(Algorithm algorithm, const KnobsByStage &stages);

}  // namespace tessera

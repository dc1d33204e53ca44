// Stages that share all loops: a schedule places one "beside" another, and both are computed in one pass.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// The algorithm with every stage that is beside another one joined to it, in `stages` too. The joined stage has the host's name and
// knobs, and the results of all. Maps become one of several values, which use each other's values of the point and, of states, what the
// program says that they see; folds become one by the product of their monoids. Every value is what it was, to the bit.
// UserError schedule.join: dims, kinds or folds differ; one needs the other at another point, or by way of a third stage.
Algorithm join_stages(Algorithm algorithm, KnobsByStage &stages);

}  // namespace tessera

// Reduction trees: a fold through fewer and fewer partial results, in one line.
//
//     "sum": {"place": "y.M", "vector": {"N": 16}, "split": {"N": {"lanes": [64, 16, 4]}}}
//
// says what splits inside each other say (schedule.h), with the knobs of the stages that they make:
//
//     "sum": {"split": {"N": 64 lanes, "N.i": 16 lanes, "N.i.i": 4 lanes}, "unroll": {"N.i.i.i": 4}}
//     "sum.partial":  {"micro": {"N.i": 64},    "vector": {"N.i": 16}}                              every 64th element of N
//     "sum.partial2": {"micro": {"N.i.i": 16},  "vector": {"N.i.i": 16},  "unroll": {"N.i.o": 4}}   every 16th of the 64
//     "sum.partial3": {"micro": {"N.i.i.i": 4}, "vector": {"N.i.i.i": 4}, "unroll": {"N.i.i.o": 4}} every 4th of the 16
//
// The partial stages are placed where the stage is, or in the innermost loop over its own dims where it is computed at root. `vector`
// of the dim is the lanes of a vector: a level of fewer runs in a vector of its own width, one of fewer than 4 in none. Without it the
// stages are placed and nothing else. What a schedule states of these stages itself is over this, field by field.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// The knobs with every tree written out. `inlined` is the algorithm without calls, before or after its splits.
KnobsByStage without_trees(const KnobsByStage &stages, const Algorithm &inlined);
// The schedule with every tree written out for `declared`, its variants' too.
ResolvedSchedule without_trees(const ResolvedSchedule &schedule, const Algorithm &declared);

// The other way round: splits inside each other as trees wherever that says the same, so that without_trees(…) gives `stages` again.
KnobsByStage with_trees(const KnobsByStage &stages, const Algorithm &inlined);

}  // namespace tessera

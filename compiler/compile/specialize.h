// Programs for a part of the extents: a schedule's variant runs only where its conditions hold, so they are knowledge there.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/lower/lower.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// The algorithm for those extents at which all of `when` hold: its symbolic dims have that as constraints (min, max, multiple_of), also
// those that are equal to a dim that it is about. What is no constraint (M % 8 == 1, M != 5) changes nothing, nor does a feature, nor what
// leaves a dim without a point.
Algorithm constrained(const Algorithm &algorithm, const std::vector<Condition> &when);

// `lower` for those extents, or for all where only that program is proved right. A dim that has one extent there is that number in the
// program's body; the arguments and dims are those of the program for all extents, but for the dims' constraints. Throws as `lower`.
TileProgram lower_variant(const Algorithm &algorithm, const std::vector<Condition> &when, const KnobsByStage &stages, const Target &target,
                          const LoweringObserver &observer = {}, FunctionForm form = FunctionForm::defined);

}  // namespace tessera

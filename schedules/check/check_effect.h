// The part of check.h that refuses knobs which would change nothing.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/artifact/read.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// `knobs` are those of `stage`, with directives written in; all of their addresses are valid. UserError schedule.no-effect, and
// schedule.lanes for lanes that do not divide their register tile.
void check_effect(const Stage &stage, const Knobs &knobs, const Algorithm &algorithm, const FieldPlace &where);

}  // namespace tessera

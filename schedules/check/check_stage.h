// The part of check.h that looks at one stage's knobs.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "schedules/artifact/read.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// Every address in the knobs of `name`. A stage that a pack will add ("acc.w.packed") counts as there. Errors as in check.h.
void check_stage(const std::string &name, const KnobsByStage &stages, const Algorithm &algorithm, const FieldPlace &where);

}  // namespace tessera

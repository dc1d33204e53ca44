// The forward part of a gradient as a graph for costmodel/plan: stages with the bytes of their results and the time of their copies.
#pragma once
#include "algorithms/ir/extents.h"
#include "algorithms/transform/derivatives/forward_part.h"
#include "costmodel/plan/residual_plan.h"
#include "schedules/target/target.h"

namespace tessera {

struct ResidualChoices {
    ResidualGraph graph;
    double seconds_before = 0;  // that groups of rounds take, whatever is kept: the rounds of each group run again
};

// `extents` are of the part's own symbolic dims. Bytes are of all rounds that are kept at a time. Seconds are those in which the target's
// peaks do a stage alone, in one thread (roofline.h): what a copy takes at least. They count although nothing but the copy may need the
// stage, as in a gradient without results. An extent that data decides counts as 64. UserError as all_extents.
ResidualChoices residual_choices(const ForwardPart &part, const Extents &extents, const Target &target);

}  // namespace tessera

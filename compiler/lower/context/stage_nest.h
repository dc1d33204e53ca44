// The loops of a stage as its schedule has them.
#pragma once
#include "compiler/lower/context/mapping.h"

namespace tessera {

// The nest of a stage at root, whose pieces are these. UserError schedule.parallel, schedule.threads.
StageNest root_nest(const Lowering &lowering, const Stage &stage, const Pieces &pieces);
// The same with other knobs than the schedule states for it.
StageNest root_nest(const Lowering &lowering, const Stage &stage, const Knobs &stated, const Pieces &pieces);
// The nest of a stage inside the loops of another one.
StageNest placed_nest(const Lowering &lowering, const Stage &stage, const Pieces &pieces, const StageNest &around);

// The loops of a stage under such knobs, outermost first. What a mapping adds to knobs changes none over dims that are folded.
std::vector<LoopName> loops_of(const Lowering &lowering, const Stage &stage, const Knobs &knobs);

// Whether what is placed so is computed in that loop of the nest: in the region that is needed there, or of all its points those that
// belong to the iteration. A level alone names the innermost of its loops.
bool is_demanded_at(const Place &place, const StageNest &nest, size_t position);
bool is_owned_at(const Place &place, const StageNest &nest, size_t position);

// The tile that the loop goes over; nothing where it goes point by point.
std::optional<int64_t> tile_of(const Knobs &knobs, const LoopName &loop);

}  // namespace tessera

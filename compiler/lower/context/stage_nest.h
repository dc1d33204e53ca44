// The loops of a stage as its schedule has them.
#pragma once
#include "compiler/lower/context/mapping.h"

namespace tessera {

// Of a stage at root, whose pieces are these. UserError schedule.parallel, schedule.threads.
StageNest root_nest(const Lowering &lowering, const Stage &stage, const Pieces &pieces);
// Of a stage inside the loops of another one.
StageNest placed_nest(const Lowering &lowering, const Stage &stage, const Pieces &pieces, const StageNest &around);

// Whether the place is that loop of the nest. A level alone names the innermost of its loops.
bool names_loop(const Place &place, const StageNest &nest, size_t position);

// The tile that the loop goes over; nothing where it goes point by point.
std::optional<int64_t> tile_of(const Knobs &knobs, const LoopName &loop);

}  // namespace tessera

// What a step of a register tile (tile_step.h) does to the accumulators of a fold.
#pragma once
#include "compiler/lower/body/point_values.h"

namespace tessera {

// acc = step(acc, inputs), all parts from the old values, at every point of the tile.
TileBody fold_step(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

// The step of the monoid, for an element or a vector of them: the same statement, inside a vector loop or not.
TileBody monoid_step(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);
// acc = the family's meaning of acc and a group of elements.
TileBody group_step(const Instruction &family, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

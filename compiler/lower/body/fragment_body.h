// A fold by a family that has fragments, at one register tile: a grid of accumulators that are fragments, row by row.
#pragma once
#include "compiler/lower/context/build.h"

namespace tessera {

std::vector<Buffer> fragment_accumulators(const FragmentStep &step, const Cursor &at, Names &names);
// Zeros; where an earlier slice of the fold has been accumulated, its result.
TileBody begin_fragments(const FragmentStep &step, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);
// accumulator += a * b, for each of the grid. Operands of the shorter side stay while those of the longer one come one by one. An operand
// is moved from where it lies, if it lies there as the family has it and all of it may be read; else a copy of it is.
TileBody fragment_step(const FragmentStep &step, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);
// To a tile of the program's own; to anything else through such a tile.
TileBody write_fragments(const FragmentStep &step, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

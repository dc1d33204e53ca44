#pragma once
#include "compiler/lower/context/cursor.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

// The cache lines that a stage asks for before it computes a tile. UserError schedule.prefetch.
TileBody prefetches(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

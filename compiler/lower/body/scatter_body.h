#pragma once
#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

// A fold with a computed destination, at root: identity everywhere, then one element after the other. UserError schedule.scatter,
// schedule.ragged.
TileBody scatter_body(const Lowering &lowering, const Stage &stage, const Scope &scope, Names &names);

}  // namespace tessera

// What a fold with computed destinations does at a register tile of its ordinary dims.
#pragma once
#include "compiler/lower/body/point_values.h"

namespace tessera {

// One element of the fold steps at its position of the result. UserError schedule.scatter, schedule.lanes.
TileBody scatter_body(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

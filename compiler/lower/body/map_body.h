// What a Map computes at a register tile.
#pragma once
#include "compiler/lower/body/point_values.h"

namespace tessera {

TileBody map_body(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

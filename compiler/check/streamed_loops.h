// What a streamed loop may be (tile_program.h).
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// Whether the loop is one Copy without a guard, from elements side by side to elements side by side.
bool copies_row(const Loop &loop);

}  // namespace tessera

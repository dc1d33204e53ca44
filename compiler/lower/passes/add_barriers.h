// Barriers between the threads of a GPU's block, where one step of a team may meet another (compiler/check/barriers.h).
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The body of a whole program with the barriers that it needs added.
TileBody add_barriers(const TileBody &body, const std::vector<Dim> &dims);

}  // namespace tessera

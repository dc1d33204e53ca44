// Barriers between the threads of a GPU's block, from dependences: a tile program's thread loops are the steps that a team
// takes, one after the other, and between two of them stands a barrier where a thread may read or overwrite what another one
// has written. What is outside thread loops (serial loops, conditions) is the same for all threads of a block, so all of them
// reach the same barriers.
//
// Two steps meet in a buffer when both touch it and one of them writes it; iterations of one loop do not when their elements
// are shown to be apart (verify_races.h). Registers belong to one thread each.
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The body of a whole program with the barriers that it needs added.
TileBody with_barriers(const TileBody &body, const std::vector<Dim> &dims);

// What of the body needs a barrier that is not there; "" when nothing does.
std::string missing_barrier(const TileBody &body, const std::vector<Dim> &dims);

}  // namespace tessera

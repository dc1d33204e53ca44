// Barriers between the threads of a GPU's block, from dependences. A tile program's thread loops are the steps that a team takes,
// one after the other. Between two steps stands a barrier if a thread may read or overwrite what another thread has written. What
// is outside thread loops (serial loops, conditions) is the same for all threads of a block, so all of them reach the same
// barriers.
//
// Two steps meet in a buffer when both touch it and one of them writes it. Iterations of one loop do not meet if their elements are
// shown to be apart (verify_races.h). Registers belong to one thread each.
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The body of a whole program with the barriers that it needs added.
TileBody with_barriers(const TileBody &body, const std::vector<Dim> &dims);

// Names what needs a barrier that is missing; "" if none is.
std::string missing_barrier(const TileBody &body, const std::vector<Dim> &dims);

}  // namespace tessera

// Whether tile programs are the same, node by node: what their texts say, without writing them.
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The same nodes in the same order, with equal expressions under equal names: one text.
bool equal(const TileBody &a, const TileBody &b);

// Equal for programs of equal resolved_hash; for others equal with probability 2^-64. Valid within one process; records keep the
// resolved hash.
uint64_t identity_of(const TileProgram &program);

}  // namespace tessera

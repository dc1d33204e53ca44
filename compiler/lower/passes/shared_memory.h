// Which buffers of a GPU's block are in its shared memory: a pass over the nest of one root stage.
#pragma once
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"

namespace tessera {

// The nest came with every such buffer in the shared space. In the order of `names`, which has all of them, those of constant size stay
// there as long as `bytes` last; the others are in the block's part of the workspace. UserError schedule.gpu where warps would load
// fragments from one of these.
TileBody with_shared_memory(TileBody nest, const std::vector<std::string> &names, int64_t bytes);

}  // namespace tessera

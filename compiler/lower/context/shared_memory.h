// Which buffers of a GPU's block are in its shared memory: a pass over the nest of one root stage.
#pragma once
#include "compiler/lower/context/names.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

// The nest came with every such buffer in the shared space. In the order in which the buffers were named, those of constant size stay
// there as long as `bytes` last; the others are in the block's part of the workspace.
TileBody with_shared_memory(TileBody nest, const Names &names, int64_t bytes);

}  // namespace tessera

#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// Loops of `kind`, which are parallel loops or loops of blocks: two of them, one directly in the other, run as one over all pairs. What is
// left of them further in runs serially, inside one worker. Loops that store to an argument that `frame` says is large have no tensor of
// small extents that bounds how many pairs there are: they are fused only where its dims do.
TileBody fuse_parallel(const TileBody &body, LoopKind kind, const TileProgram &frame = {});
// The body with every loop of `kind` made serial.
TileBody serial_within(const TileBody &body, LoopKind kind);

}  // namespace tessera

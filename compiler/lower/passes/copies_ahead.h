// Which copies to shared memory are asynchronous: those that the processor makes so.
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The body of a whole program, where copies that are no chunks (compiler/tile/chunks.h) are made at once; all are where `has_ahead` is
// false. Where none is left, nothing is committed or awaited.
TileBody with_copies_ahead(const TileBody &body, const TileProgram &frame, bool has_ahead);

}  // namespace tessera

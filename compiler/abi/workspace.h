// Room in the workspace, which the plan of a kernel asks for before it runs.
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The bytes of a buffer, over extents. Positions have 32 bits in emitted code: more than TESS_MAX_ELEMENTS elements ask for more than
// the runtime ever grants (runtime/kernel.h), which it reports.
Expr workspace_bytes(const Buffer &buffer);

}  // namespace tessera

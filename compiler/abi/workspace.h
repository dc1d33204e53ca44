// Space in the workspace, which the plan of a kernel asks for before the kernel runs.
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The bytes of a buffer, over extents. Positions have 32 bits in emitted code, so a buffer of more than TESS_MAX_ELEMENTS elements
// asks for more than the runtime ever grants (runtime/abi/kernel.h), and the runtime reports it.
Expr workspace_bytes(const Buffer &buffer);

// Up to where the next buffer may begin: TESS_WORKSPACE_ALIGNMENT.
int64_t aligned(int64_t bytes);

}  // namespace tessera

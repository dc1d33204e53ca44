// Which near buffers of a CPU's program are on the stack.
#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The body with those buffers moved from the stack to the workspace that would exceed stack_bytes_limit beside what is alive around
// them and the registers inside. Each buffer alone fits; many that live at once need not.
TileBody limit_stack(const TileBody &body);

}  // namespace tessera

#pragma once
#include "compiler/lower/context/build.h"

namespace tessera {

// The loop at the cursor over tiles of `tile` points of its dim, whose piece is known.
Built over_tiles(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, int64_t tile);

}  // namespace tessera

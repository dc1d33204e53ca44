#pragma once
#include "compiler/lower/context/build.h"

namespace tessera {

// The loop at the cursor over vectors of `lanes` points of its dim, whose piece is known.
Built over_vectors(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, int64_t lanes);

}  // namespace tessera

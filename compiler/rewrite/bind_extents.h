#pragma once
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"

namespace tessera {

// Replaces symbolic dims by fixed ones. UserError shape.unknown-dim, shape.constraint, shape.too-large.
Algorithm bind_extents(const Algorithm &algorithm, const Extents &extents);

}  // namespace tessera

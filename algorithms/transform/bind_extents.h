#pragma once
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"

namespace tessera {

// Replaces symbolic dims by fixed ones, those that are declared equal to them too. UserErrors of given_extents, shape.too-large.
Algorithm bind_extents(const Algorithm &algorithm, const Extents &extents);

}  // namespace tessera

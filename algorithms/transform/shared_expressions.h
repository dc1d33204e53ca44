// One node for all equal expressions: a rewrite of Algorithm to Algorithm.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// The same algorithm, whose equal expressions are one node throughout, in monoids too; its callees stay as they are. Passes that visit each
// node once, and name what is used twice, tell nodes apart by address: after this, what they do depends on what is computed alone, and not
// on who made the algorithm, a builder or a reader.
Algorithm with_shared_expressions(Algorithm algorithm);

}  // namespace tessera

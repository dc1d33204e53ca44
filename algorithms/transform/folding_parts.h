#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// A monoid of the same parts that folds elements which are lifted already: what other folds by it have made.
Monoid folding_parts(const Monoid &monoid);

}  // namespace tessera

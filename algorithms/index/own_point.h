// Which point of a stage that keeps rows makes the element that somebody reads.
#pragma once
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// The point of the stage that has the element at `index`, where a reader inside of the same parents reads it, and of the rows of its own
// segment alone. Empty where the element may be of another segment, or of none. The reader's dims are the algorithm's.
std::vector<Expr> own_point(const Algorithm &algorithm, const Stage &stage, const std::vector<Expr> &index);

}  // namespace tessera

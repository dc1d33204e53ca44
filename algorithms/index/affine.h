// An index as a sum over the axes of a view (algorithm.h, View).
#pragma once
#include <optional>
#include <vector>

#include "algorithms/index/bounds.h"

namespace tessera {

// first + the sum of steps[i] * axis(i); `first` and the steps are free of axes. A step is 0 where the axis does not move the index.
struct AxisSteps {
    Expr first;
    std::vector<Expr> steps;
};

// Nothing where the index is no such sum over axis(0) to axis(rank - 1).
std::optional<AxisSteps> affine(const Expr &index, size_t rank);

}  // namespace tessera

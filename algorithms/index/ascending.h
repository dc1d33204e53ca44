// Results whose elements do not decrease, as the offsets of segments do: a fact that is read off the stage that makes them.
#pragma once
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Elements of a tensor of one axis do not decrease along it, and lie in 0 ..= most, an expression over extents.
struct Ascending {
    std::string tensor;
    Expr most;
    std::string given;  // the tensor of which it has the elements, clamped; "" where they are computed
};

// Forward inclusive scans by max of what is clamped into 0 ..= most: cast(i32, max(min(x, most), 0)). Whatever the x are, each element is
// one of those and no less than the one before. Calls are not looked into.
std::vector<Ascending> ascending_results(const Algorithm &algorithm);

}  // namespace tessera

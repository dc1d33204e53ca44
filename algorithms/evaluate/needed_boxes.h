// What must be computed for some points of the outputs: with it the reference interpreter can judge a few points of a large kernel.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/index/bounds.h"
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"

namespace tessera {

using Box = std::vector<Interval>;  // by axis; an end that is not finite is that of the axis

// By stage, the box of its dims that these boxes of outputs need, directly or through other stages; a stage that is missing is not
// needed. What is read at positions made of data, what a scatter writes and the dim of a scan are needed whole. `algorithm` has no calls
// and updates no state; `extents` of all dims that no data decides.
std::map<std::string, Box> needed_boxes(const Algorithm &algorithm, const Extents &extents, const std::map<std::string, Box> &outputs);

}  // namespace tessera

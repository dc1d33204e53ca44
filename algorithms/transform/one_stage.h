// One stage of an algorithm as an algorithm of its own: what earlier steps made is its input.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Named "<algorithm>.<stage>". It is not verified.
Algorithm one_stage(const Algorithm &algorithm, const Stage &stage);

}  // namespace tessera

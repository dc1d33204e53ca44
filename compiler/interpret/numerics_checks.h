// Whether stages keep to what their author asks of their numbers (NumericsCheck, algorithms/ir/algorithm.h): proved by range_analysis.h for
// all inputs in the stated ranges.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// `bound` has its fixed dims; one that is not fixed counts at its declared maximum, and without one has no bound. An input of floats
// without a stated range may hold any number of its type. A callee's own checks are for the kernel that is made of it. UserErrors
// numerics.unstable, numerics.unbounded, numerics.loss, each with what was asked, what is known and the stage where it begins;
// numerics.repeat where a call repeats.
void check_numerics(const Algorithm &bound);

}  // namespace tessera

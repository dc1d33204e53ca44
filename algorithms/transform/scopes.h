// Which of an algorithm's calls a stage belongs to by its name. A scope may begin with another one, and so may a stage of the algorithm's
// own: beside the call "layers" stand the call "layers.grad" and the stage "layers.y.grad".
#pragma once
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// The call with the longest scope that the name is within ("layers.grad.up" in "layers.grad"). Null where it is within none, and where it
// is one of the algorithm's own stages or of what a schedule makes of that ("layers.y.grad.partial").
const Call *call_around(const Algorithm &caller, const std::string &name);
bool is_within(const std::string &name, const Call &call, const Algorithm &caller);

}  // namespace tessera

// An algorithm as a program that calls it: what rewrites calls then meets it as any callee.
#pragma once
#include <map>
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// The same name, inputs, states, parameters and outputs, but tensors that `names` calls otherwise; its one step is a call of the algorithm,
// whose stages are named behind the scope, the last part of the name.
Algorithm as_a_call(const Algorithm &f, const std::map<std::string, std::string> &names = {});

}  // namespace tessera

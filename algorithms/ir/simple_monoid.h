// The folds by which passes of a monoid's batch form may go (BatchPass, algorithm.h), by name.
#pragma once
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

const std::vector<std::string> &simple_monoids();           // their names
Monoid simple_monoid(const std::string &name, DType type);  // InternalError for another name

}  // namespace tessera

// Whether the rule of an algorithm is one: parts that are legal and fit together.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Its own rule, not those of its callees; it may have none. UserError algorithm.rule, or what verify says of a part.
void verify_rule(const Algorithm &algorithm);

}  // namespace tessera

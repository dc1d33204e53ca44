// What a tile's value is as an argument of a call.
#pragma once
#include <optional>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// The load of which the builder made the value of a tile, without what the policy adds.
Expr load_in(Expr value, const Numerics &policy);

// What a callee's tensor of these dims is where it is bound to such a load; the index of a round is left as it is. Nothing where it is no
// view.
std::optional<View> view_of(const Expr &load, const std::vector<std::string> &dims);

}  // namespace tessera

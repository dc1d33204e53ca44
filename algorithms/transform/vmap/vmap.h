// An algorithm for many arguments at once: vmap(f) of a batch gives at each index what f gives of the arguments there, bit for bit.
//
//   f         inputs x (M, K), w (K, N); output y (M, N)
//   vmap(x)   inputs x (B, M, K), w (K, N); output y (B, M, N)
//
// The dim goes in front of every tensor that is mapped, and of every result that one of them decides: stages, writes to states, callees and
// what repeats. What no mapped tensor decides is computed once. A mapped parameter becomes an input, so a seed that is mapped draws other
// numbers at each index, and one that is not draws the same. It composes with derivatives (derivatives.h) in any order.
//
// UserErrors, with the stage and what to do:
//   vmap.unknown   what is mapped is no input, state or parameter, or nothing is
//   vmap.dim       the algorithm has a dim of that name
//   vmap.write     a state is written and not mapped
//   vmap.extent    the extent of a dim would be another one at each index
//   vmap.view      a call's view lies where a mapped number says
//   vmap.until     a call would stop early after another round at each index
//   vmap.rank      a tensor of a caller has more axes than kernels take
#pragma once
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// `over`: a dim that the algorithm does not have. `mapped`: inputs, states and parameters; nothing named: all inputs and states. Every
// output has the dim in front, also one that is the same at each index. Named f.vmap.
Algorithm vmap(const Algorithm &f, const Dim &over, const std::vector<std::string> &mapped = {});

}  // namespace tessera

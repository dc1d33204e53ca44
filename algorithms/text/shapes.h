// The extents of every tensor and stage of an algorithm, those of its callees under their calls, with each dim's path through them.
#pragma once
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

//     linear_pair
//       input x[M, K = 768]: f32
//       call up = linear: M is M, N is H = 3072, K is K = 768
//         stage acc[M, N = H = 3072]: f32, over K = K = 768
//       stage y[M, N = 768]: f32, output
//
// An extent that is fixed, by the declaration or by bind_extents, is a number; one that is derived is its size, or a number where that is
// known; others are names.
std::string shapes_text(const Algorithm &algorithm);

}  // namespace tessera

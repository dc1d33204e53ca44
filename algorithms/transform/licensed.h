// What a numerics policy licenses, written into the algorithm: a rewrite of Algorithm to Algorithm.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// The algorithm with what its policy licenses (Licence, ir/numerics.h) in its stages; without licences, the same. Stages keep names and
// dims, so schedules for the one are schedules for the other. Callees stay as they are: who built them did this by their own policy.
//   contraction    a * b + c -> fma(a, b, c), and with minus; a sum of a * b -> the fold dot of a and b. Monoids stay as they are.
//   reassociation  x * c1 * c2 -> x * (c1 * c2) and x + c1 + c2 -> x + (c1 + c2), of constants. A sum of s * x, where s varies with nothing
//                  that is folded -> a sum of x, times s where stages read it: stages over its own dims, not outputs and calls.
//   reciprocals    x / c -> x * (1 / c); x / y -> x * (1 / y) where x varies with a dim that y does not, so loops compute 1 / y less
//                  often; x / sqrt(y) -> x * rsqrt_newton(y), and rsqrt of f32, in monoids too
//   functions      exp and others of f32 -> those of fewer bits (narrower_function), in monoids too
Algorithm with_licences(Algorithm algorithm);

}  // namespace tessera

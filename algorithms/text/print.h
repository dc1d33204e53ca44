// The text form of an algorithm, for people and for comparing: one line for each dim, parameter, tensor, stage and call.
//
//   algorithm linear: f32 (storage f32, compute f32, accumulate f32, nearest_even)
//     dim N: multiple of 16
//     input x[M, K]: f32
//     acc[M, N]: f32 = dot over K of (x[M, K], w[K, N])
//     y[M, N]: f32 = fma($0, $0, acc[M, N])
//       $0 = ...
//     outputs y
//
// $0, $1, … stand for subexpressions that occur more than once; they are numbered anew in each line. Monoids other than
// the standard ones are defined after the outputs, callees after the algorithm, each once.
#pragma once
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Depends on the content alone: equal algorithms give equal texts. Linear in the distinct expressions written.
std::string to_text(const Algorithm &algorithm);

// "1.0, 2.0": the values of a constant; a long one is cut, and its hash stands for the rest.
std::string values_text(const Tensor &constant);

const char *name_of(Role role);                // "input", "state", "constant"
const char *name_of(ScanDirection direction);  // "forward", "backward"

}  // namespace tessera

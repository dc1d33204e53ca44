// The same algorithm with every float computed in f64: what the reference interpreter compares a policy's precision
// with.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Stages, monoids and operations of f32, bf16 and f16 become f64; casts between floats vanish. Inputs, constants and
// states keep their stored type. A function takes its definition in f64; other code on the bits of an f32 keeps working on f32
// bits. Calls stay as they are.
Algorithm in_double(const Algorithm &algorithm);
Expr in_double(const Expr &e, const std::set<std::string> &stored);  // `stored`: tensors that keep their type

}  // namespace tessera

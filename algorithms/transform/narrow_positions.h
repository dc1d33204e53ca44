// Positions that folds carry, in half of the bytes: a rewrite of Algorithm to Algorithm.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Makes those i64 parts of folds i32 that only ever hold their identity, positions which are proved to fit, and constants that fit.
// What reads such a part widens it, so every other value is the same, and so is its type. The parts that are outputs or arguments of
// calls stay as they are.
Algorithm narrow_positions(Algorithm algorithm);

}  // namespace tessera

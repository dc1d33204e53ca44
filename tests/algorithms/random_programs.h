// Programs of a few steps each, of every construct that has a derivative.
#pragma once
#include <random>

#include "algorithms/evaluate/reference.h"
#include "algorithms/ir/algorithm.h"

namespace tessera::test {

// In f64, over dims M and N, and L rounds where there are any: out of x (M, N) and weights, y (M, N) by one to five steps.
Algorithm random_program(std::mt19937 &random);
Extents random_extents(std::mt19937 &random);

}  // namespace tessera::test

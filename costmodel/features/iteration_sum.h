// Sums over the iterations that there are of loops whose counts depend on each other's positions, where conditions hold. Loops that
// do not depend on each other at a given iteration of those around them are summed apart (an elimination tree, as of a sparse matrix:
// Liu, "The role of elimination trees in sparse factorization", 1990). In the innermost loop of a chain an expression is a straight line
// from one corner to the next, and a straight line's sum is a formula.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "costmodel/features/index_value.h"

namespace tessera {

using LoopMask = uint64_t;  // of loops around a place, the outermost one's bit first

struct SummedLoop {
    size_t loop = 0;  // its bit
    std::string_view variable;
    Expr count;             // iterations; none where it is below 0
    LoopMask depends = 0;   // the loops that the count depends on
    double mean = 1;        // of the count: from it follows how many evaluations a sum takes
    bool is_share = false;  // all iterations together count as one
};

struct SummedCondition {
    Expr holds;
    bool otherwise = false;  // it must not hold
    LoopMask depends = 0;
};

struct IterationSum {
    double points = 0;  // iterations of all loops
    double value = 0;   // of an expression, over these points
};

// Loops are given outermost first, with all that a count, a condition or the expression depends on; other variables have the values that
// `at` says. Exact as long as it takes no more than 10,000 evaluations; beyond that some iterations of a loop stand for the others.
IterationSum iteration_sum(const LoopPositions &at, const std::vector<SummedLoop> &loops, const std::vector<SummedCondition> &conditions,
                           const Expr &e);

}  // namespace tessera

// The value of index arithmetic where the loops of a tile program stand at given iterations.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "algorithms/ir/expr.h"

namespace tessera {

struct LoopPositions {
    std::unordered_map<std::string, int64_t> loops;    // variable -> iteration
    std::unordered_map<std::string, Expr> lets;        // variable -> its value
    std::unordered_map<std::string, int64_t> extents;  // dim -> extent

    // Data that an index loads counts as 0, and so does what is divided by zero.
    int64_t value(const Expr &e) const;
};

}  // namespace tessera

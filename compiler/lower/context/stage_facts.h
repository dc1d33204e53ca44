// What is known of a stage by itself, found once for each.
#pragma once
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// In which order the parts of an accumulator step. A part goes in place once nobody else reads its old value; those that read
// one another's go together, by way of a second set of accumulators.
struct FoldOrder {
    std::vector<size_t> alone, together;
    // Those together have no dims of their own: each point of a tile steps all of them before the next point, so what they compute alike
    // is held for one point at a time.
    bool by_point = true;
};

struct StageFacts {
    std::vector<Tensor> results;
    std::vector<Expr> loads;  // of each of its expressions, operands first
    FoldOrder order;          // of a fold
    // Of each part of a fold, what its step computes alike for all points of the part's own dims: the outermost operations that use
    // none of those dims, each once. They are computed once for each point of the tile.
    std::vector<std::vector<Expr>> invariants;
};

StageFacts facts_of(const Stage &stage);

// Whether the dim is one of the stage's own, and not one that it folds.
bool is_spatial(const Stage &stage, const std::string &dim);
// Whether iterations over the dim write to elements of their own. A write's do where the dim is an index of its state by itself.
bool writes_apart(const Stage &stage, const std::string &dim);

}  // namespace tessera

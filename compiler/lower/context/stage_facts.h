// What is known of a stage by itself, found once for each.
#pragma once
#include <set>
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

// Which parts of a fold are computed at all.
struct LiveParts {
    std::vector<size_t> stepped;  // those that somebody reads, and those that their steps use
    std::vector<bool> stored;     // of each part, whether its result is
};

struct StageFacts {
    std::vector<Tensor> results;  // with the dims that name their elements by points
    std::vector<Expr> loads;      // of each of its expressions, operands first
    LiveParts live;               // of a fold
    FoldOrder order;              // of its live parts
    // For each part of a fold, what its step computes alike for all points of the part's own dims: the outermost operations that use
    // none of those dims, each once. They are computed once for each point of the tile.
    std::vector<std::vector<Expr>> invariants;
};

// `read`: the tensors that somebody reads.
StageFacts facts_of(const Stage &stage, const std::set<std::string> &read);

// Whether the dim is one of the stage's own, and not one that it folds.
bool is_spatial(const Stage &stage, const std::string &dim);
// Whether the stage folds the dim: it has no axis of the result.
bool folds_over(const Stage &stage, const std::string &dim);
// Whether the stage's loop over the dim goes from its last point to its first.
bool runs_backward(const Stage &stage, const std::string &dim);
// Whether iterations over the dim write to elements of their own. A write's do where the dim is an index of its state by itself.
bool writes_apart(const Stage &stage, const std::string &dim);

}  // namespace tessera

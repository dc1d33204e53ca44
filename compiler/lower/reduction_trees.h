// What of a schedule decides the bits of results: the reduction trees that it makes.
//
// Each value of a Map and each step of a fold is one expression of the algorithm, which every emitter computes alike. Tiles, places, packs,
// vectors, unrolling and threads decide when it is computed and where its result lies, and nothing else. A schedule changes bits in three
// ways only:
//
//   splits        partial results, and in which order they are added up (split.h)
//   order         of the loops over several dims that one stage folds, or along which its writes may meet
//   instructions  families of another meaning: mul_add rounds each product, dot2 takes two elements and flushes (instruction.h)
//
// Sums, products, least and largest of integers are exact: none of these changes them.
//
// No target changes them either: what loops bind to are dims along which elements are apart.
//
// A tree is a function of extents: chunks of 64 make one tree for each K. So trees are told of the algorithm as it was declared, and two
// kernels with one hash give equal bits wherever their fixed extents and the conditions of their variants let both of them run.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// How one fold of the algorithm is computed.
struct FoldTree {
    std::string stage;               // with the scopes of the calls that it is in
    std::vector<std::string> steps;  // in words: partial results first
    friend bool operator==(const FoldTree &, const FoldTree &) = default;
};

struct ReductionTrees {
    // "sha256:…": equal for two schedules of one algorithm only if every element of every result has the same bits, at all extents.
    // Renaming what the algorithm declares changes it.
    std::string hash;
    std::vector<FoldTree> folds;  // in the order of the program
    // Symbolic dims on whose extents no bits depend: an element of a result is the same function of the elements of arguments, whatever the
    // extent is. What is folded over a dim depends on it, and so does what asks whether an index is the last one.
    std::set<std::string> invariant;
};

// `algorithm` with calls and functions; `stages` as `lower` takes them. UserError as the rewrites of `lower`.
ReductionTrees reduction_trees(const Algorithm &algorithm, const KnobsByStage &stages);

}  // namespace tessera

// A program in which equal steps follow each other, such as a network of equal layers, with one call that repeats in their place
// (loop rerolling). Code, schedules and the search for them are then those of one round.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera {

struct Rolled {
    Algorithm algorithm;
    // Inputs that are new -> what they are stacked of, along a new first dim, in the order of rounds. Those inputs are gone.
    std::map<std::string, std::vector<std::string>> stacks;
};

// `stackable`: inputs of which each round may take another, since whoever holds their data can lay them one behind another. Chains that
// save fewer than `least_saved` steps stay. What the algorithm gives is the same, bit for bit.
Rolled roll_chains(const Algorithm &algorithm, const std::set<std::string> &stackable, size_t least_saved = 2);

}  // namespace tessera

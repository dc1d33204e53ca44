// How a Map's value chooses what it computes by the index of a dim alone, as stacked tiles do (`stack` in
// algorithms/build/tile_functions.h).
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

struct Choice {
    bool by_index = false;   // in any way
    int64_t remainders = 1;  // by the index's remainder by this
    int64_t run = 0;         // by the run of so many points that the index lies in; 0: by no runs, or by runs of several lengths
};

Choice choice_of(const Stage &stage, const std::string &dim);

}  // namespace tessera

// How a Map's value chooses, by nothing but the index of a dim, what it computes, as stacked tiles do (algorithms/tile_functions.h).
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

struct Choice {
    bool by_index = false;   // in any way
    int64_t remainders = 1;  // by the index's remainder by this
    int64_t run = 0;         // by which run of so many points the index lies in; 0: not so, or by runs of several lengths
};

Choice choice_of(const Stage &stage, const std::string &dim);

}  // namespace tessera

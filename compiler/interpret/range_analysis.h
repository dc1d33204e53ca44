// What holds for all inputs within declared ranges: between which values each stage's results lie, and an a priori bound on their rounding
// errors. Intervals are of computed values, which lie between the rounded ends since rounding never turns an order round.
//
// A fold over n elements is charged n roundings on every path, by gamma_n = n u / (1 - n u) (Higham, Accuracy and Stability, 2nd ed., 3.1
// and 4.2), so its bound is for every reduction tree and for products that are rounded by themselves. It is not for folds that a schedule
// splits online, which compute something else (schedules/knobs/reduction_tree.h).
//
// Beside intervals some facts are known, without which the first softmax would overflow: x - max over x is at most 0, and 0 for one
// element; a sum of what is not negative is at least each term; a square and a variance are not negative, a mean is among what it is of.
// Monoids whose facts are not here, and bits of floats outside of functions, lose what is known.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"
#include "compiler/interpret/range_values.h"

namespace tessera {

struct StageRange {
    std::string stage;
    KnownRange range;
    std::string trouble;  // what may overflow, or be no number, or is not followed; "" where the stage is safe if what it reads is
};

// Stages in their order. `algorithm` has no calls; `given` has inputs, states and parameters by name (floats: others have what their type
// holds), `extents` those of dims that are known. What a stage writes to a state is checked, and is not taken to stay in the state's range.
std::vector<StageRange> analyse_ranges(const Algorithm &algorithm, const Extents &extents,
                                       const std::map<std::string, RealInterval> &given);

}  // namespace tessera

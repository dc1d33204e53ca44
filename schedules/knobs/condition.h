// What a variant's conditions say of extents.
#pragma once
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// Whether a condition on a dim holds at an extent.
bool holds(const Condition &condition, int64_t extent);

// Extents of the dim at which all of `when` that is about it holds, in order; of each stretch between bounds the first ones. None
// where it never holds.
std::vector<int64_t> extents_that_meet(const std::vector<Condition> &when, const Dim &dim);

// Whether all of `when` that is about the dim holds at each of its extents.
bool always_hold(const std::vector<Condition> &when, const Dim &dim);

}  // namespace tessera

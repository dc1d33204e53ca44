// What a variant's conditions say of extents.
#pragma once
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// Whether a condition on a dim holds at an extent.
bool holds(const Condition &condition, int64_t extent);

// Extents of the dim that tell whether conditions on it ever hold, and whether they ever fail: some beside each bound, for all remainders.
std::vector<int64_t> telling_extents(const std::vector<Condition> &when, const Dim &dim);

// Extents of the dim at which all conditions of `when` about it hold, in order: the first ones of each stretch between bounds.
// Empty if they never hold.
std::vector<int64_t> extents_that_meet(const std::vector<Condition> &when, const Dim &dim);

// Whether all conditions of `when` about the dim hold at each of its extents.
bool always_hold(const std::vector<Condition> &when, const Dim &dim);

}  // namespace tessera

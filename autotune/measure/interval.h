// What several processes say of the true ratio, with intervals that hold together.
#pragma once
#include <cstddef>
#include <vector>

#include "bench/measure/ranks.h"

namespace tessera {

constexpr size_t processes = 5;  // before each look at what they saw
constexpr size_t looks = 2;      // at most
// The geometric mean of the ratios that two or more processes saw, and its 95% interval by Student's t of their logarithms. Taken together,
// the intervals of so many comparisons hold, at each of their looks (Bonferroni).
ConfidenceInterval interval_of_processes(const std::vector<double> &ratios, size_t comparisons);
// Whether more processes may show something faster that is worth them: a gain of more than a hundredth that may also be none.
bool is_undecided(const ConfidenceInterval &interval);

}  // namespace tessera

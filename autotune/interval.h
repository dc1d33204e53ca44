// What repeated measurements say of the true value, with 95% intervals.
#pragma once
#include <cstddef>
#include <vector>

namespace tessera {

struct ConfidenceInterval {
    double centre = 0, lower = 0, upper = 0;
    double spread() const { return (upper - lower) / 2 / centre; }  // half of it, relative
};

double median(std::vector<double> values);  // 0 of none

// The median and its interval by ranks (normal approximation of the binomial): of what one process saw again and again.
ConfidenceInterval interval_of_ranks(std::vector<double> values);

constexpr size_t processes = 5;
// The geometric mean of the ratios that so many processes saw, and its interval by Student's t of their logarithms. Taken together, the
// intervals of so many comparisons hold (Bonferroni).
ConfidenceInterval interval_of_processes(const std::vector<double> &ratios, size_t comparisons);

}  // namespace tessera

// What repeated measurements say about the true value, by their ranks, whatever the distribution.
#pragma once
#include <vector>

namespace tessera {

struct ConfidenceInterval {
    double centre = 0, lower = 0, upper = 0;
    double spread() const { return (upper - lower) / 2 / centre; }  // half of it, relative
};

double median(std::vector<double> values);  // of an even number the mean of the middle two; 0 of none

// The median and its 95% interval by ranks (normal approximation of the binomial). For fewer than six values it reaches from the
// least to the largest and holds less often: for three values in three cases of four. Reversed or negated values give the mirrored
// interval.
ConfidenceInterval interval_of_ranks(std::vector<double> values);

}  // namespace tessera

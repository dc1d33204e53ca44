// What repeated measurements say of the true value, by their ranks: of any distribution.
#pragma once
#include <vector>

namespace tessera {

struct ConfidenceInterval {
    double centre = 0, lower = 0, upper = 0;
    double spread() const { return (upper - lower) / 2 / centre; }  // half of it, relative
};

double median(std::vector<double> values);  // of an even number the mean of the middle two; 0 of none

// The median and its 95% interval by ranks (normal approximation of the binomial). Of fewer than six values it is from the least to the
// largest and holds less: of three, the median in three cases of four. Of reversed or negated values it is the mirrored one.
ConfidenceInterval interval_of_ranks(std::vector<double> values);

}  // namespace tessera

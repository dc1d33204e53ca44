#include "autotune/measure/interval.h"

#include <cmath>
#include <numbers>

#include "support/text/error.h"

namespace tessera {

// The distribution function of Student's t, which has a closed form for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and
// 26.7.4).
static double distribution_of_t(double t, size_t degrees) {
    const double n = static_cast<double>(degrees), angle = std::atan(t / std::sqrt(n)), cosine = std::cos(angle);
    double sum = 0, term = degrees % 2 ? cosine : 1;
    for (size_t power = degrees % 2 ? 1 : 0; power + 2 <= degrees; power += 2) {
        sum += term;
        term *= cosine * cosine * static_cast<double>(power + 1) / static_cast<double>(power + 2);
    }
    sum *= std::sin(angle);
    return 0.5 + (degrees % 2 ? (angle + sum) / std::numbers::pi : sum / 2);
}

// Where the distribution function is `p`, above its middle.
static double quantile_of_t(double p, size_t degrees) {
    double low = 0, high = 1e4;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        (distribution_of_t(middle, degrees) < p ? low : high) = middle;
    }
    return low;
}

ConfidenceInterval interval_of_processes(const std::vector<double> &ratios, size_t comparisons) {
    require(ratios.size() >= 2 && comparisons > 0, "an interval is of several processes, for a comparison");
    const double n = static_cast<double>(ratios.size());
    double mean = 0, squares = 0;
    for (double r : ratios) mean += std::log(r) / n;
    for (double r : ratios) squares += (std::log(r) - mean) * (std::log(r) - mean);
    const double error = std::sqrt(squares / (n - 1) / n);
    const double half = quantile_of_t(1 - 0.025 / static_cast<double>(comparisons * looks), ratios.size() - 1) * error;
    return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

bool is_undecided(const ConfidenceInterval &interval) {
    constexpr double worth_it = 1.01;
    return interval.lower <= 1 && interval.upper >= 1 && interval.centre > worth_it;
}

}  // namespace tessera

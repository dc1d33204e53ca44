#include "autotune/interval.h"

#include <algorithm>
#include <cmath>

#include "algorithms/error.h"

namespace tessera {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

ConfidenceInterval interval_of_ranks(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const double n = static_cast<double>(values.size()), half = 0.98 * std::sqrt(n);
    auto at = [&](double rank) { return values[static_cast<size_t>(std::clamp(rank, 0.0, n - 1))]; };
    return {at(std::floor(n / 2)), at(std::floor(n / 2 - half)), at(std::ceil(n / 2 + half))};
}

// Of Student's t with four degrees of freedom: where its distribution function, which has a closed form, is `p`.
static double quantile_of_t4(double p) {
    auto distribution = [](double t) {
        const double s = 1 + t * t / 4;
        return 0.5 + 0.375 * t / std::sqrt(s) * (1 - t * t / (12 * s));
    };
    double low = 0, high = 1e4;
    for (int i = 0; i < 100; i++) {
        const double middle = (low + high) / 2;
        (distribution(middle) < p ? low : high) = middle;
    }
    return low;
}

ConfidenceInterval interval_of_processes(const std::vector<double> &ratios, size_t comparisons) {
    require(ratios.size() == processes && comparisons > 0, "an interval is of five processes");
    double mean = 0, squares = 0;
    for (double r : ratios) mean += std::log(r) / processes;
    for (double r : ratios) squares += (std::log(r) - mean) * (std::log(r) - mean);
    const double error = std::sqrt(squares / (processes - 1) / processes);
    const double half = quantile_of_t4(1 - 0.025 / static_cast<double>(comparisons)) * error;
    return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

}  // namespace tessera

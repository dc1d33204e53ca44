#include "bench/measure/ranks.h"

#include <algorithm>
#include <cmath>

namespace tessera {

static double median_of_sorted(const std::vector<double> &values) {
    const size_t n = values.size();
    return n == 0 ? 0 : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return median_of_sorted(values);
}

ConfidenceInterval interval_of_ranks(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const double n = static_cast<double>(values.size());
    const size_t last = values.size() - 1, upper = static_cast<size_t>(std::min(std::ceil(n / 2 + 0.98 * std::sqrt(n)), n - 1));
    return {median_of_sorted(values), values[last - upper], values[upper]};
}

}  // namespace tessera

#include "autotune/measure/metric.h"

#include <algorithm>
#include <cmath>

#include "support/text/error.h"

namespace tessera {

const char *name_of(Metric metric) {
    switch (metric) {
    case Metric::latency: return "latency";
    case Metric::throughput: return "throughput";
    case Metric::code_size: return "code-size";
    case Metric::workspace: return "workspace";
    }
    return "?";
}

bool is_speed(Metric metric) { return metric == Metric::latency || metric == Metric::throughput; }

static double bytes_of(const Measurement &m, Metric metric) {
    return 64 + static_cast<double>(metric == Metric::code_size ? m.code_bytes : m.workspace_bytes);
}

double gain_over(const Measurement &base, const Measurement &m, const Goal &goal) {
    if (is_speed(goal.metric)) return m.lower;
    if (m.upper < goal.min_speed) return 0.01 * std::min(1.0, m.upper);
    return bytes_of(base, goal.metric) / bytes_of(m, goal.metric);
}

static size_t feature_for(Metric metric) {
    const std::string name = metric == Metric::code_size ? "statements" : "workspace_bytes";
    const std::vector<Feature> &table = feature_table();
    const auto at = std::find_if(table.begin(), table.end(), [&](const Feature &f) { return f.name == name; });
    require(at != table.end(), "the feature table has a row for " + name);
    return static_cast<size_t>(at - table.begin());
}

std::vector<double> GoalModel::predict(const std::vector<Featured> &candidates) const {
    std::vector<double> scores = time_.predict(candidates);
    if (is_speed(goal_.metric)) return scores;
    constexpr double too_slow = 4;  // for each power of two below the least speed, as much as so many powers of two of bytes
    const size_t bytes = feature_for(goal_.metric);
    const double least = base_.empty() ? -INFINITY : time_.predict(base_).front() + std::log2(goal_.min_speed);
    for (size_t i = 0; i < candidates.size(); i++)
        scores[i] = -static_cast<double>(candidates[i].values[bytes]) - too_slow * std::max(0.0, least - scores[i]);
    return scores;
}

}  // namespace tessera

#include "autotune/search/trial_allocation.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tessera {

constexpr size_t window = 2;        // parts of the search that the slope is taken over
constexpr double seen_share = 0.5;  // of what was saved lately; the rest is hope

static bool is_untouched(const AllocatedTask &task) { return task.best.size() < 2; }

double expected_gain(const AllocatedTask &task) {
    if (task.best.empty()) return std::numeric_limits<double>::infinity();
    if (is_untouched(task)) return task.weight * task.best[0];
    const size_t last = task.best.size() - 1, before = last >= window ? last - window : 0;
    const int trials = std::max(1, task.trials[last] - task.trials[before]);
    const double seen = (task.best[before] - task.best[last]) / trials;
    const double hope = task.best[last] / std::max(1, task.trials[last]);
    return task.weight * (seen_share * std::max(0.0, seen) + (1 - seen_share) * hope);
}

std::optional<size_t> next_task(const std::vector<AllocatedTask> &tasks) {
    auto urgency = [](const AllocatedTask &task) { return std::pair(is_untouched(task), expected_gain(task)); };
    std::optional<size_t> next;
    for (size_t i = 0; i < tasks.size(); i++)
        if (tasks[i].is_open && (!next || urgency(tasks[i]) > urgency(tasks[*next]))) next = i;
    return next;
}

}  // namespace tessera

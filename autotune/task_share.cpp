#include "autotune/task_share.h"

#include <algorithm>
#include <limits>

namespace tessera {

constexpr size_t window = 2;        // parts of the search that the slope is taken over
constexpr double seen_share = 0.5;  // of what was saved lately; the rest is hope

double expected_gain(const TaskShare &task) {
    if (task.best.size() < 2) return std::numeric_limits<double>::infinity();
    const size_t last = task.best.size() - 1, before = last >= window ? last - window : 0;
    const int trials = std::max(1, task.trials[last] - task.trials[before]);
    const double seen = (task.best[before] - task.best[last]) / trials;
    const double hope = task.best[last] / std::max(1, task.trials[last]);
    return task.weight * (seen_share * std::max(0.0, seen) + (1 - seen_share) * hope);
}

std::optional<size_t> next_task(const std::vector<TaskShare> &tasks) {
    std::optional<size_t> next;
    for (size_t i = 0; i < tasks.size(); i++)
        if (tasks[i].is_open && (!next || expected_gain(tasks[i]) > expected_gain(tasks[*next]))) next = i;
    return next;
}

}  // namespace tessera

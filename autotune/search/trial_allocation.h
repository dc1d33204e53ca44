// Which of several tasks a shared budget is best spent on: the one from which the next trials promise to save the most time, as in
// the task scheduler of Ansor (Zheng et al., OSDI 2020, section 6).
#pragma once
#include <cstddef>
#include <optional>
#include <vector>

namespace tessera {

struct AllocatedTask {
    double weight = 1;         // how often the kernel runs, relative to the others
    std::vector<double> best;  // seconds of the fastest so far, after each part of the search; nothing measured yet: empty
    std::vector<int> trials;   // candidates measured up to there
    bool is_open = true;       // more can be measured
};

// Seconds, times the weight, that one more trial promises to save: in part what the last parts of the search saved, in part what is
// left at best, which shrinks with each trial. Of what nothing but the base was measured, all of the base's time is hoped for.
double expected_gain(const AllocatedTask &task);

// The open task that promises most; the first of equals. Those of which nothing but the base was measured come before all others.
// Nothing where none is open.
std::optional<size_t> next_task(const std::vector<AllocatedTask> &tasks);

}  // namespace tessera

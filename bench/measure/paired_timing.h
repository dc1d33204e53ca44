// Interleaved timing: the contestants take turns, so that a change of the machine's pace meets all of them.
#pragma once
#include <functional>
#include <string>
#include <vector>

struct Contest {
    std::vector<double> seconds;              // median of each contestant
    std::vector<double> ratio, lower, upper;  // of the first one's speed to each: median and 95% interval
};

// Calls every contestant once per round, for at least `rounds` rounds and about `budget_s` seconds in all.
Contest contest(const std::vector<std::function<void()>> &contestants, int rounds, double budget_s);

// A time that can be believed: work on pinned threads, warmed, and repeated until its median is known closely.
#pragma once
#include <functional>

struct Steady {
    double best_s = 0;  // the shortest round
    double median_s = 0;
    double spread = 0;  // half the 95% interval of the median, relative to it
    int rounds = 0;
};

struct Precision {
    double spread = 0.01;  // what is close
    double min_s = 0.05;   // measure for at least so long,
    double max_s = 1;      // and give up after so long
};

// Runs work(worker) on `threads` threads at once, round after round. Each is pinned to a processor of its own; further threads
// share processors. A round ends when the last thread is done. The caller's own thread is not pinned.
Steady steady(int threads, const std::function<void(int worker)> &work, const Precision &precision = {});

// The smallest power of two of repetitions for which one call takes `seconds` or more.
long repetitions(const std::function<void(long count)> &work, double seconds);

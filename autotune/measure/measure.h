// How fast a candidate is, measured so that it can be believed, and whether it is right.
//
// Every candidate becomes a program of its own (worker.c) beside the kernel that it is compared with. The two take turns,
// so that a change of the machine's pace meets both and their ratio stays. What the candidate computes is compared by memcmp
// with what its tile program says, on blocks chosen at random, before it is timed and, with fresh data, after. Programs are
// built side by side and run one after the other on each runner.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/measurement.h"
#include "autotune/measure/measurement_task.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

// Throws UserError tune.stopped.
[[noreturn]] void stopped_before_the_base(const std::string &task);

class Measurer {
public:
    // `base` is what candidates are compared with. Throws as LimitedProcess when it cannot be compiled; UserError command.cc;
    // tune.stopped when it is stopped before it has begun.
    Measurer(const MeasurementTask &task, const MeasureOptions &options, const TileProgram &base);
    ~Measurer();

    // Calls `done` for each program as it is measured, by its position, one at a time. `best` is the largest ratio so far: what is
    // clearly below half of it is timed no longer. A runner that fails where the base fails on it too is given up, and what it had is
    // given to another; UserError tune.runner when none is left, and what else fails of the measuring, as Programs::build does.
    void measure(const std::vector<TileProgram> &programs, double best, const std::function<void(size_t, const Measurement &)> &done);
    // At that time it is stopped, until `stops` is called.
    void end_at(std::chrono::steady_clock::time_point time);
    // From here on `stop` stops it, or nothing but `abandon`.
    void stops(bool stops);
    // Measures each in five processes of its own, and in five more where these leave open whether it is faster (interval.h). Gives the 95%
    // intervals of what processes see (Student's t of their logarithms), which hold together for so many comparisons, and for both looks
    // (Bonferroni).
    void confirm(const std::vector<TileProgram> &programs, size_t comparisons,
                 const std::function<void(size_t, const Measurement &)> &done);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera

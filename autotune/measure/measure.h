// How fast a candidate is, measured so that it can be believed, and whether it is right.
//
// Every candidate becomes a program of its own (worker.c) beside the kernel that it is compared with. The two take turns,
// so that a change of the machine's pace meets both and their ratio stays. What the candidate computes is compared by memcmp
// with what its tile program says, on blocks chosen at random, before it is timed and, with fresh data, after. Programs are
// built side by side and run one after the other on each runner.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autotune/measure/measurement_task.h"
#include "autotune/measure/verdict.h"
#include "compiler/tile/tile_program.h"
#include "support/processes/limited_process.h"

namespace tessera {

struct MeasureOptions {
    std::vector<std::string> runners = {""};  // commands of the shell's that run the program whose path is their last word; "": as it is
    std::string cc = "cc";                    // with options: links programs for the runners' machines
    int jobs = 1;                             // programs built at a time
    double seconds = 0.4;                     // for timing one candidate
    double precision = 0.01;                  // of the ratio: half its 95% interval
    bool cold = false;                        // each call that is timed finds nothing of its data in the caches; of one caller
    Limits compile;
    double widest = 0.05;     // interval of a ratio that is believed; a wider one is measured again, twice at most
    double run_limit_s = 20;  // for all that one program does
    uint64_t run_memory_bytes = uint64_t{16} << 30;
    const std::atomic<bool> *stop = nullptr;        // once it is set, what compiles or runs is ended, until `never_stop`
    const std::atomic<bool> *abandon = nullptr;     // the same, also after `never_stop`
    std::function<void(const std::string &)> warn;  // is told of a runner that is given up
};

struct Measurement {
    Verdict verdict = Verdict::unmeasured;
    std::string message;  // of what failed
    double seconds = 0;   // of one call: the median
    // Of the base's time to the candidate's, with its 95% interval where it is `measured`: above 1 is faster.
    double ratio = 0, lower = 0, upper = 0;
    uint64_t workspace_bytes = 0, code_bytes = 0;
    double compile_s = 0;
};

// Throws UserError tune.stopped.
[[noreturn]] void stopped_before_the_base(const std::string &task);

class Measurer {
public:
    // `base` is what candidates are compared with. Throws as LimitedProcess when it cannot be compiled; UserError command.cc;
    // tune.stopped when it is stopped before it has begun.
    Measurer(const Subject &subject, const MeasureOptions &options, const TileProgram &base);
    ~Measurer();

    // Calls `done` for each program as it is measured, by its position, one at a time. `best` is the largest ratio so far: what is
    // clearly below half of it is timed no longer. A runner that fails where the base fails on it too is given up, and what it had is
    // given to another; UserError tune.runner when none is left, and what else fails of the measuring, as Programs::build does.
    void measure(const std::vector<TileProgram> &programs, double best, const std::function<void(size_t, const Measurement &)> &done);
    // At that time it is stopped, until `never_stop`.
    void end_at(std::chrono::steady_clock::time_point time);
    // From here on nothing stops it but `abandon`.
    void never_stop();
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

// Where the time of a program goes, by callee: each is timed as a kernel by itself.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "generators/certify/kernel_time.h"
#include "generators/choose/callees.h"

namespace tessera {

struct CalleeTime {
    CalledKernel callee;
    std::string schedule;  // that it was timed with, "none" for plain loops
    bool is_own = true;    // the calls take it too; otherwise the program's schedule states the callee's stages itself
    KernelTime time;

    double all_runs_s() const { return time.median_s * static_cast<double>(callee.runs); }
};

struct CalleeTimes {
    std::vector<CalleeTime> all;  // leaves, the longest of all runs first
    std::vector<UncountedCall> uncounted;

    double all_runs_s() const;
};

// UserError callees.none: the algorithm calls nothing.
void check_calls(const Algorithm &program);

// Times the callees that call nothing themselves, with the schedule that the first call of each takes. Where the program's schedule states
// a callee's stages, that is its best match. UserError as callees_of, prepare and time_of.
CalleeTimes times_of_callees(const Registry &registry, const KernelOptions &options, const PreparedKernel &program, const Extents &symbolic,
                             const Timing &timing);

std::optional<double> gflops_of(const KernelTime &time);

// A table, beside the time of the whole: what each callee has of it, and what remains. That is the program's own stages and its calls; a
// callee by itself may find more in the caches than it does inside, so the remainder may be negative.
std::string text_of(const CalleeTimes &times, const KernelTime &whole);
// "callees" and "remainder_s".
nlohmann::ordered_json json_of(const CalleeTimes &times, const KernelTime &whole);

}  // namespace tessera

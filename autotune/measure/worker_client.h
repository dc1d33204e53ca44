// One candidate's program (worker.c) while it runs: what it is asked, and whether what it answers can be believed.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "autotune/measure/measurement_task.h"
#include "autotune/measure/verdict.h"
#include "bench/measure/inputs.h"
#include "support/processes/line_process.h"

namespace tessera {

// Why a candidate is not, or no further, measured.
struct Failed {
    Verdict verdict;
    std::string message;
};

struct WorkerLimits {
    double seconds = 20;            // that the program may take for everything together
    uint64_t memory_bytes = 0;      // of address space; 0 for no limit
    std::function<bool()> stopped;  // ends it at once
};

// Every call throws Failed: crashed when the program ends, hangs or answers what makes no sense; wrong; unmeasured when stopped.
// Time that is spent here and not in the program does not count on its limit.
class WorkerClient {
public:
    // Runs `command`. The task and the tile program of the candidate outlive it.
    WorkerClient(const MeasurementTask &task, const TileProgram &program, const std::string &command, const WorkerLimits &limits,
                 const std::filesystem::path &log);

    struct Ran {
        double seconds = 0;
        uint64_t workspace_bytes = 0;
        std::map<size_t, Array> written;  // by argument
    };
    // What the candidate makes of these inputs; outputs are poisoned before.
    Ran run_on(const Inputs &inputs);
    // Compares with the tile program's interpreter, on blocks that `seed` chooses; what is too long to interpret is compared with the
    // base's results, within what another order of additions may change.
    void compare(const Ran &ran, const Inputs &inputs, uint64_t seed);
    // Seconds of one call of the candidate and of one of the base, each repeated so often.
    std::pair<double, double> time(long calls, long base_calls);
    // From here on each call that is timed finds nothing of its data in the caches.
    void time_cold();
    // Does something else while the program waits.
    void aside(const std::function<void()> &work);

    const Extents &extents() const { return extents_; }

private:
    const MeasurementTask &task_;
    const TileProgram &program_;
    WorkerLimits limits_;
    Extents extents_;                         // with those that packing makes
    std::map<size_t, TileProgram> packings_;  // by the argument that is packed
    LineProcess process_;
    LineProcess::Clock::time_point end_;

    [[noreturn]] void fail(const std::string &why);
    void say(std::string_view text);
    std::string hear();
    void say_limit();
    Array held_before(const Argument &argument, const Inputs &inputs) const;
    Ran run(int which);
    Array packed_by(const TileProgram &packing, const Inputs &inputs) const;
    void compare_nearly(const Ran &ran, const Ran &base) const;
    void compare_bits(const TileProgram &blocks, const Ran &ran, const Inputs &inputs) const;
};

}  // namespace tessera

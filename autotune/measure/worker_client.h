// One candidate's program (worker.c) while it runs: what it is asked, and whether what it answers can be believed.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "algorithms/evaluate/lazy_array.h"
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
    double seconds = 20;            // that the program may take until it is placed anew
    uint64_t memory_bytes = 0;      // of address space; 0 for no limit
    std::function<bool()> stopped;  // ends it at once
};

// Every call throws Failed: crashed when the program ends or answers what makes no sense; timed_out when it does not answer in time; wrong;
// unmeasured when stopped. Time that is spent here and not in the program does not count on its limit.
class WorkerClient {
public:
    // Runs `command`. The task and the tile program of the candidate outlive it.
    WorkerClient(const MeasurementTask &task, const TileProgram &program, const std::string &command, const WorkerLimits &limits,
                 const std::filesystem::path &log);

    // What arguments hold before a run. The plan outlives the next comparison.
    void give(const InputPlan &inputs);
    struct Ran {
        double seconds = 0;
        uint64_t workspace_bytes = 0;
    };
    // One call of the candidate, with arguments as they were given; outputs are poisoned before.
    Ran run() { return run(0); }
    // Compares what the last run left with the tile program's interpreter, on blocks that `seed` chooses, and fetches no more than these;
    // what is too long to interpret is compared with the base's results, within what another order of additions may change.
    void compare(uint64_t seed);
    // Seconds of one call of the candidate and of one of the base, each repeated so often.
    std::pair<double, double> time(long calls, long base_calls);
    // From here on each call that is timed finds nothing of its data in the caches.
    void time_cold();
    // Moves all that kernels read and write to other memory. The program's time begins anew.
    void place();

private:
    using Clock = LineProcess::Clock;
    using LazyArrays = std::map<size_t, std::unique_ptr<LazyArray>>;  // by argument
    const MeasurementTask &task_;
    const TileProgram &program_;
    WorkerLimits limits_;
    Extents extents_;                         // with those that packing makes
    std::map<size_t, TileProgram> packings_;  // by the argument that is packed
    LineProcess process_;
    double seconds_left_;
    const InputPlan *inputs_ = nullptr;

    // While it lives, time counts.
    struct Turn {
        explicit Turn(WorkerClient &client) : client(client) {}
        ~Turn() { client.seconds_left_ -= std::chrono::duration<double>(Clock::now() - start).count(); }
        Clock::time_point end() const { return start + LineProcess::duration(client.seconds_left_); }
        WorkerClient &client;
        Clock::time_point start = Clock::now();
    };

    [[noreturn]] void fail(const std::string &why);
    void say(std::string_view text);
    std::string hear();
    // After the command, which takes long; the program ends itself too, on a machine where nothing else would end it.
    std::string ask(const std::string &command);
    void read_part(std::byte *to, int64_t bytes);
    const InputTensor &input_of(const Argument &argument) const;
    Ran run(int which);
    std::unique_ptr<LazyArray> held_before(size_t i);
    void compare_packings(uint64_t seed);
    void compare_with(const LazyArray &expected, size_t i, bool packed, const std::string &what);
    void compare_bits(const TileProgram &blocks);
    void compare_nearly(uint64_t seed);
};

}  // namespace tessera

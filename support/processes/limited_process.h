// Runs a step that may take very long in a process that can be killed: unrolled code has taken compilers from a second to most of
// an hour.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/processes/process_tree.h"

namespace tessera {

struct Limits {
    double seconds = 60;                        // of the clock on the wall, and of each processor
    uint64_t memory_bytes = uint64_t{8} << 30;  // of address space
};

// What is run, for messages.
struct Activity {
    std::string subject, doing;  // "matmul", "compiling"
    std::string id, remedy;      // of the UserError for a limit
    std::string seconds_option;  // "--run-limit-s", which raises the limit on time; "" where nothing does
};
Activity compiling(const std::string &kernel);

// Runs `work` in a child process. What it writes to files stays; all else is lost. The caller must have no other threads.
class LimitedProcess {
public:
    // UserError machine.exhausted when there can be no more processes or open files.
    LimitedProcess(const Activity &activity, const Limits &limits, const std::function<void()> &work);
    ~LimitedProcess();  // ends it, and every process that it started
    LimitedProcess(const LimitedProcess &) = delete;
    LimitedProcess &operator=(const LimitedProcess &) = delete;

    // Waits until it ends or reaches a limit. A UserError or InternalError that `work` throws is thrown here. UserError of the
    // activity's id when a limit ends it (every process that it started ends too), output.write when the machine's limit on the size
    // of files does; InternalError names the signal or the exit code when it ends in another way.
    void finish();
    // The same, but how it ends is for the caller to judge: its status as waitpid has it.
    int status();
    // Waits until one of `processes` can finish without waiting, and gives its position; gives nothing once `stopped` is true.
    // There must be at least one.
    static std::optional<size_t> wait_for_any(const std::vector<LimitedProcess *> &processes, const std::function<bool()> &stopped = {});

private:
    using Clock = std::chrono::steady_clock;
    Activity activity_;
    Limits limits_;
    Clock::time_point end_;
    std::unique_ptr<Supervised> process_;
    int report_ = -1;
    std::string text_;
    bool says_more_ = true;
    void read_report();
    bool is_over() const;
    int64_t milliseconds_left() const;
    [[noreturn]] void stopped_at(const std::string &limit, const std::string &or_else) const;
};

// Starts and finishes one.
void run_limited(const Activity &activity, const Limits &limits, const std::function<void()> &work);

}  // namespace tessera

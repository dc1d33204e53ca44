// Running a step that may explode, in a process that can be killed: unrolled code has taken compilers from a second to
// most of an hour.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace tessera {

struct Limits {
    double seconds = 60;                        // of the clock on the wall, and of each processor
    uint64_t memory_bytes = uint64_t{8} << 30;  // of address space
};

// What is run, for messages.
struct Activity {
    std::string subject, doing;  // "matmul", "compiling"
    std::string id, remedy;      // of the UserError for a limit
};
Activity compiling(const std::string &kernel);

// Runs `work` in a child process; what it writes to files stays, all else is lost. A UserError or InternalError that
// `work` throws is thrown here. UserError of the activity's id when a limit ends it (every process that it started ends
// too); InternalError names the signal or the exit code when it ends in another way. The caller has no other threads.
void run_limited(const Activity &activity, const Limits &limits, const std::function<void()> &work);

}  // namespace tessera

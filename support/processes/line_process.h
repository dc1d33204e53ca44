// Another program, spoken to in lines and bytes. It may hang, crash or lie at any moment.
#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "support/processes/process_tree.h"

namespace tessera {

class LineProcess {
public:
    using Clock = std::chrono::steady_clock;
    static Clock::duration duration(double seconds) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    }
    static Clock::time_point after(double seconds) { return Clock::now() + duration(seconds); }

    // Runs a shell command in at most `memory_bytes` of address space (0: no limit). Its stderr goes to `log`. Once `stopped` is
    // true, nothing waits for it any longer. UserError machine.exhausted when there can be no more processes or open files.
    LineProcess(const std::string &command, uint64_t memory_bytes, const std::filesystem::path &log,
                const std::function<bool()> &stopped = {});
    ~LineProcess();  // ends it, and all that it started
    LineProcess(const LineProcess &) = delete;
    LineProcess &operator=(const LineProcess &) = delete;

    // Each gives false, or nothing, when `end` has passed or the program reads or writes no more.
    bool write(std::string_view bytes, Clock::time_point end);
    std::optional<std::string> line(Clock::time_point end);  // without its newline; of at most 4096 bytes
    bool read(void *bytes, size_t count, Clock::time_point end);

    // Ends the program if it still runs, and says how it ended: "it did not answer in time", "it ended by signal 11 (Segmentation
    // fault)", followed by the end of its stderr.
    std::string ended();
    bool was_late() const { return late_; }  // once it has ended: it did not answer in time

private:
    std::unique_ptr<Supervised> process_;
    int in_ = -1, out_ = -1;
    std::filesystem::path log_;
    std::function<bool()> stopped_;
    std::string buffered_;
    bool late_ = false;
    int end();
    bool fill(Clock::time_point end);
    bool wait_for(int descriptor, short events, Clock::time_point end) const;
};

}  // namespace tessera

#include "support/processes/limited_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int failed = 1, out_of_memory = 2;

void limit(int resource, uint64_t value) {
    const rlimit both{value, value};
    setrlimit(resource, &both);
}

void write_all(int descriptor, const std::string &text) {
    for (size_t at = 0; at < text.size();) {
        const ssize_t n = write(descriptor, text.data() + at, text.size() - at);
        if (n <= 0) return;
        at += static_cast<size_t>(n);
    }
}

// The child: ends the process, and says through the pipe why `work` failed: the error's id (empty for one of ours), a
// newline, its message.
[[noreturn]] void run_child(const Limits &limits, const std::function<void()> &work, int report) {
    for (int fatal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXFSZ})
        signal(fatal, SIG_DFL);  // the parent's handlers would report for it
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, static_cast<uint64_t>(std::ceil(limits.seconds)) * std::max(1u, std::thread::hardware_concurrency()) + 1);
#ifndef __SANITIZE_ADDRESS__  // its shadow memory takes terabytes of address space
    limit(RLIMIT_AS, limits.memory_bytes);
#endif
    int code = 0;
    try {
        work();
    } catch (const UserError &error) {
        write_all(report, error.id() + "\n" + error.message());
        code = failed;
    } catch (const std::bad_alloc &) { code = out_of_memory; } catch (const std::length_error &) {
        code = out_of_memory;  // more elements than a container can have at all
    } catch (const std::exception &error) {
        write_all(report, std::string("\n") + error.what());
        code = failed;
    }
    _exit(code);
}

[[noreturn]] void rethrow(const std::string &subject, const std::string &text) {
    const size_t newline = text.find('\n');
    if (newline != std::string::npos && newline > 0) throw UserError(text.substr(0, newline), text.substr(newline + 1));
    std::string message = newline == 0 ? text.substr(1) : "it failed without saying why";
    const std::string before = "internal error: ";
    if (message.starts_with(before)) message = message.substr(before.size(), message.rfind(" (this is a bug") - before.size());
    throw InternalError(subject + ": " + message);
}

}  // namespace

Activity compiling(const std::string &kernel) {
    return {kernel, "compiling", "compile.limit", "Unroll less (smaller micro tiles, fewer variants)", "--compile-limit-s"};
}

LimitedProcess::LimitedProcess(const Activity &activity, const Limits &limits, const std::function<void()> &work)
    : activity_(activity), limits_(limits) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) exhausted(activity.subject + ": a pipe to the process for " + activity.doing, errno);
    try {
        process_ = std::make_unique<Supervised>([&] {
            close(ends[0]);
            run_child(limits, work, ends[1]);
        });
    } catch (const UserError &error) {
        close(ends[0]), close(ends[1]);
        throw UserError(error.id(), activity.subject + ": " + activity.doing + ": " + error.message());
    }
    close(ends[1]);
    report_ = ends[0];
    fcntl(report_, F_SETFL, O_NONBLOCK);
    end_ = Clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(limits.seconds));
}

LimitedProcess::~LimitedProcess() {
    if (report_ >= 0) close(report_);
}

int64_t LimitedProcess::milliseconds_left() const {
    return std::clamp<int64_t>(std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count(), 0, 1 << 30);
}

// Reads all that is there.
void LimitedProcess::read_report() {
    char part[4096];
    ssize_t n;
    while ((n = read(report_, part, sizeof part)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) text_.append(part, static_cast<size_t>(n));
    says_more_ = n < 0 && errno == EAGAIN;
}

bool LimitedProcess::is_over() const { return milliseconds_left() == 0 || process_->ends_within(std::chrono::milliseconds(0)); }

std::optional<size_t> LimitedProcess::wait_for_any(const std::vector<LimitedProcess *> &processes, const std::function<bool()> &stopped) {
    constexpr int64_t asked_every_ms = 50;
    while (!stopped || !stopped()) {
        int64_t least = stopped ? asked_every_ms : 1 << 30;
        std::vector<pollfd> waits;
        for (size_t i = 0; i < processes.size(); i++) {
            const LimitedProcess &p = *processes[i];
            if (p.is_over()) return i;
            least = std::min(least, p.milliseconds_left());
            waits.push_back({p.process_->leash(), POLLIN, 0});
            waits.push_back({p.says_more_ ? p.report_ : -1, POLLIN, 0});
        }
        if (poll(waits.data(), waits.size(), static_cast<int>(least)) < 0) continue;
        for (size_t i = 0; i < processes.size(); i++)
            if (waits[2 * i + 1].revents != 0) processes[i]->read_report();
    }
    return std::nullopt;
}

void LimitedProcess::stopped_at(const std::string &limit, const std::string &or_else) const {
    throw UserError(activity_.id, fmt::format("{}: {} was stopped; expected it to {}. {}{}.", activity_.subject, activity_.doing, limit,
                                              activity_.remedy, or_else));
}

int LimitedProcess::status() {
    wait_for_any({this});
    const bool in_time = process_->ends_within(std::chrono::milliseconds(0));
    const int status = process_->end();
    read_report();
    if (!in_time || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
        stopped_at(fmt::format("end within {:g} s", limits_.seconds),
                   activity_.seconds_option.empty() ? "" : ", or raise " + activity_.seconds_option);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
        throw UserError("output.write", activity_.subject + ": " + activity_.doing +
                                            " was stopped, since a file would have been larger than this "
                                            "machine lets it be; expected room for it. Raise the limit (ulimit -f).");
    if (!text_.empty()) rethrow(activity_.subject, text_);
    return status;
}

void LimitedProcess::finish() {
    const int status = this->status();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == out_of_memory)
        stopped_at(fmt::format("need at most {:g} GiB of memory", static_cast<double>(limits_.memory_bytes) / (1u << 30)), "");
    const std::string process = activity_.subject + ": the process for " + activity_.doing;
    if (WIFSIGNALED(status))
        throw InternalError(fmt::format("{} ended by signal {} ({})", process, WTERMSIG(status), strsignal(WTERMSIG(status))));
    throw InternalError(fmt::format("{} ended with code {}", process, WEXITSTATUS(status)));
}

void run_limited(const Activity &activity, const Limits &limits, const std::function<void()> &work) {
    LimitedProcess(activity, limits, work).finish();
}

}  // namespace tessera

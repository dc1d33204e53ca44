#include "bench/limited.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <chrono>
#include <cmath>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "algorithms/error.h"
#include "runtime/tessera.h"

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
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    for (int fatal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) signal(fatal, SIG_DFL);  // the parent's handlers would report for it
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, static_cast<uint64_t>(std::ceil(limits.seconds)) * static_cast<uint64_t>(tess_cpu_count()) + 1);
#ifndef __SANITIZE_ADDRESS__  // its shadow memory takes terabytes of address space
    limit(RLIMIT_AS, limits.memory_bytes);
#endif
    int code = 0;
    try {
        work();
    } catch (const UserError &error) {
        write_all(report, error.id() + "\n" + std::string(error.what()).substr(error.id().size() + std::strlen("error[]: ")));
        code = failed;
    } catch (const std::bad_alloc &) {
        code = out_of_memory;
    } catch (const std::exception &error) {
        write_all(report, std::string("\n") + error.what());
        code = failed;
    }
    _exit(code);
}

// All that the child reports, until it ends; false when the time is over first.
bool read_until(int report, std::chrono::steady_clock::time_point end, std::string &text) {
    char part[4096];
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
        if (left <= 0) return false;
        pollfd wait{report, POLLIN, 0};
        if (poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30))) < 0 && errno == EINTR) continue;
        if (wait.revents == 0) continue;
        const ssize_t n = read(report, part, sizeof part);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return true;
        text.append(part, static_cast<size_t>(n));
    }
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
    return {kernel, "compiling", "compile.limit", "Unroll less (smaller micro tiles, fewer variants), or raise --compile-limit-s"};
}

void run_limited(const Activity &activity, const Limits &limits, const std::function<void()> &work) {
    int ends[2];
    if (pipe(ends) != 0) throw InternalError(activity.subject + ": a pipe to the process for " + activity.doing + ": " + std::strerror(errno));
    const pid_t child = fork();
    if (child < 0) {
        close(ends[0]), close(ends[1]);
        throw InternalError(activity.subject + ": starting the process for " + activity.doing + ": " + std::string(std::strerror(errno)));
    }
    if (child == 0) {
        close(ends[0]);
        run_child(limits, work, ends[1]);
    }
    close(ends[1]);
    setpgid(child, child);  // here too, so that the group exists whoever runs first
    std::string text;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(limits.seconds));
    const bool in_time = read_until(ends[0], end, text);
    close(ends[0]);
    if (!in_time) kill(-child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && in_time) return;
    auto over = [&](const std::string &limit) {
        throw UserError(activity.id, fmt::format("{}: {} was stopped; expected it to {}. {}.", activity.subject, activity.doing, limit, activity.remedy));
    };
    if (!in_time || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)) over(fmt::format("end within {:g} s", limits.seconds));
    if (WIFEXITED(status) && WEXITSTATUS(status) == out_of_memory)
        over(fmt::format("need at most {:g} GiB of memory", static_cast<double>(limits.memory_bytes) / (1u << 30)));
    const std::string process = activity.subject + ": the process for " + activity.doing;
    if (WIFSIGNALED(status)) throw InternalError(fmt::format("{} ended by signal {} ({})", process, WTERMSIG(status), strsignal(WTERMSIG(status))));
    if (WEXITSTATUS(status) != failed) throw InternalError(fmt::format("{} ended with code {}", process, WEXITSTATUS(status)));
    rethrow(activity.subject, text);
}

}  // namespace tessera

#include "compiler/emit/halide/processes.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <string>

#include "runtime/abi/tessera.h"
#include "support/text/error.h"

namespace tessera::emit {

namespace {

// Ends of a job that throws; what the back end ends by itself with is none of these.
constexpr int failed = 101, out_of_memory = 102, refused = 103;

struct Child {
    pid_t id = -1;
    int words = -1;  // what it says of its failure
};

[[noreturn]] void run(const std::function<void()> &job, int words) {
    std::string why;
    int code = 0;
    try {
        job();
    } catch (const std::bad_alloc &) { code = out_of_memory; } catch (const UserError &error) {
        code = refused, why = error.id() + "\n" + error.message();
    } catch (const std::exception &error) { code = failed, why = error.what(); }
    for (size_t at = 0; at < why.size();) {
        const ssize_t n = write(words, why.data() + at, why.size() - at);
        if (n <= 0) break;
        at += static_cast<size_t>(n);
    }
    _exit(code);
}

Child start(const std::function<void()> &job) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) exhausted("a pipe to a compiling process", errno);
    const pid_t id = fork();
    if (id == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever waits for it may be killed
        run(job, ends[1]);
    }
    const int error = errno;
    close(ends[1]);
    if (id > 0) return {id, ends[0]};
    close(ends[0]);
    exhausted("a compiling process", error);
}

struct Outcome {
    std::string words;
    int status = 0;
};

Outcome finish(const Child &child) {
    Outcome outcome;
    char part[4096];
    for (ssize_t n; (n = read(child.words, part, sizeof part)) != 0;) {
        if (n > 0) outcome.words.append(part, static_cast<size_t>(n));
        else if (errno != EINTR) break;
    }
    close(child.words);
    while (waitpid(child.id, &outcome.status, 0) < 0 && errno == EINTR) {}
    return outcome;
}

// Those that run; none outlives it, so that nothing writes to a folder that is about to be deleted.
class Children {
public:
    Children() = default;
    Children(const Children &) = delete;
    ~Children() { end(); }
    size_t count() const { return running_.size(); }
    void add(const Child &child) { running_.push_back(child); }
    Outcome finish_first() {
        const Child child = running_.front();
        running_.erase(running_.begin());
        return finish(child);
    }
    void end() {
        for (const Child &child : running_) kill(child.id, SIGKILL);
        while (count() > 0) finish_first();
    }

private:
    std::vector<Child> running_;
};

[[noreturn]] void fail(const Outcome &outcome) {
    if (WIFSIGNALED(outcome.status)) raise(WTERMSIG(outcome.status));
    const int code = WIFEXITED(outcome.status) ? WEXITSTATUS(outcome.status) : 0;
    if (code == out_of_memory) throw std::bad_alloc();
    const size_t newline = outcome.words.find('\n');
    if (code == refused && newline != std::string::npos)
        throw UserError(outcome.words.substr(0, newline), outcome.words.substr(newline + 1));
    if (!outcome.words.empty()) throw InternalError(outcome.words);
    throw InternalError("a compiling process ended without saying why; what the back end printed is above");
}

}  // namespace

void in_processes(const std::vector<std::function<void()>> &jobs) {
    if (jobs.size() == 1) return jobs[0]();
    const auto most = static_cast<size_t>(std::max(1, tess_cpu_count()));
    Children running;
    auto finish_first = [&] {
        const Outcome outcome = running.finish_first();
        if (outcome.status == 0) return;
        running.end();
        fail(outcome);
    };
    for (const auto &job : jobs) {
        if (running.count() == most) finish_first();
        running.add(start(job));
    }
    while (running.count() > 0) finish_first();
}

}  // namespace tessera::emit

#include "bench/measure/instruction_count.h"

#include <sched.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>

#include "support/text/error.h"

namespace tessera {

namespace {

[[noreturn]] void refuse(const std::string &why) {
    throw UserError("bench.instructions", "counting instructions: expected a system that lets a process step through its child, " + why);
}

// A switch between two processes of one core is several times as fast as one between cores.
class OnOneCore {
public:
    OnOneCore() {
        if (sched_getaffinity(0, sizeof before_, &before_) != 0) return;
        cpu_set_t one;
        CPU_ZERO(&one);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &before_)) {
                CPU_SET(cpu, &one);
                break;
            }
        is_set_ = sched_setaffinity(0, sizeof one, &one) == 0;
    }
    ~OnOneCore() {
        if (is_set_) sched_setaffinity(0, sizeof before_, &before_);
    }
    OnOneCore(const OnOneCore &) = delete;
    OnOneCore &operator=(const OnOneCore &) = delete;

private:
    cpu_set_t before_ = {};
    bool is_set_ = false;
};

std::optional<uintptr_t> position_of(pid_t child) {
#if defined(__x86_64__)
    errno = 0;
    const long at = ptrace(PTRACE_PEEKUSER, child, offsetof(user_regs_struct, rip), nullptr);
    if (errno == 0) return static_cast<uintptr_t>(at);
#else
    (void)child;
#endif
    return std::nullopt;
}

// Ends the child in any case.
struct Child {
    pid_t id;
    ~Child() { kill(id, SIGKILL), waitpid(id, nullptr, 0); }
};

int wait_for(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) refuse(std::string("and waiting for it failed: ") + std::strerror(errno) + ".");
    return status;
}

}  // namespace

uint64_t count_instructions(const CodeRange &code, const std::function<void()> &call, uint64_t most) {
    const OnOneCore on_one_core;
    const Child child{fork()};
    if (child.id < 0) refuse(std::string("got no child: ") + std::strerror(errno) + ".");
    if (child.id == 0) {
        if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
        raise(SIGSTOP);
        call();
        raise(SIGSTOP);
        _exit(0);
    }
    if (!WIFSTOPPED(wait_for(child.id))) refuse("and this one does not. Run it where ptrace is allowed, or leave --instructions out.");
    for (uint64_t count = 0;;) {
        if (ptrace(PTRACE_SINGLESTEP, child.id, nullptr, nullptr) != 0) refuse(std::string("got: ") + std::strerror(errno) + ".");
        const int status = wait_for(child.id);
        if (!WIFSTOPPED(status)) refuse("and the call ended its process.");
        if (WSTOPSIG(status) == SIGSTOP) return count;
        if (WSTOPSIG(status) != SIGTRAP) refuse(std::string("and the call got the signal ") + strsignal(WSTOPSIG(status)) + ".");
        const auto at = position_of(child.id);
        if (!at) refuse("and says where the child is; this is for x86-64. Leave --instructions out.");
        count += *at >= code.begin && *at < code.end;
        if (count > most)
            throw UserError("bench.instructions",
                            "counting instructions: expected at most " + std::to_string(most) +
                                " in a call, got more; each takes microseconds to step over. Choose a smaller shape.");
    }
}

}  // namespace tessera

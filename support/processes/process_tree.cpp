#include "support/processes/process_tree.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "support/text/error.h"

namespace tessera {

namespace {

// What the supervisor calls is safe in a child of a program with threads: nothing allocates.

void kill_children() {
    char list[4096];
    const int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    const ssize_t n = file < 0 ? 0 : read(file, list, sizeof list - 1);
    if (file >= 0) close(file);
    list[std::max<ssize_t>(n, 0)] = 0;
    for (char *at = list; *at;) {
        char *end = at;
        const long pid = std::strtol(at, &end, 10);
        if (end == at || *end == 0) return;  // a number that the buffer cuts off
        if (pid > 1) kill(static_cast<pid_t>(pid), SIGKILL);
        at = end + (*end == ' ');
    }
}

// Ends generation after generation: the children of what is killed become children of this process.
void end_all(pid_t child, int &status) {
    constexpr int most = 5000;
    for (int i = 0; i < most; i++) {
        kill_children();
        kill(-child, SIGKILL);
        int how = 0;
        pid_t one;
        while ((one = waitpid(-1, &how, WNOHANG)) > 0)
            if (one == child) status = how;
        if (one < 0 && errno == ECHILD) return;
        const timespec pause{0, 1000000};
        nanosleep(&pause, nullptr);
    }
}

[[noreturn]] void supervise(int leash, int signals, pid_t child) {
    int status = SIGKILL;
    bool told = false;
    auto tell = [&] {
        if (!told) send(leash, &status, sizeof status, MSG_NOSIGNAL);
        told = true;
    };
    while (true) {
        pollfd waits[] = {{leash, POLLIN, 0}, {signals, POLLIN, 0}};
        if (poll(waits, 2, -1) < 0) continue;
        signalfd_siginfo signal{};
        const bool ended = waits[1].revents && read(signals, &signal, sizeof signal) > 0 && signal.ssi_signo != SIGCHLD;
        if (ended || waits[0].revents) break;
        int how = 0;
        for (pid_t one; (one = waitpid(-1, &how, WNOHANG)) > 0;)
            if (one == child) status = how, tell();
    }
    end_all(child, status);
    tell();
    _exit(0);
}

}  // namespace

Supervised::Supervised(const std::function<void()> &work) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) exhausted("a socket to a supervisor", errno);
    supervisor_ = fork();
    if (supervisor_ < 0) {
        const int error = errno;
        close(ends[0]), close(ends[1]);
        exhausted("a supervisor", error);
    }
    if (supervisor_ > 0) {
        close(ends[1]);
        leash_ = ends[0];
        return;
    }
    close(ends[0]);
    setsid();
    prctl(PR_SET_NAME, "supervisor");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t watched, before;
    sigemptyset(&watched);
    for (int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&watched, s);
    sigprocmask(SIG_BLOCK, &watched, &before);
    signal(SIGCHLD, SIG_DFL);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        setsid();
        prctl(PR_SET_NAME, "supervised");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigprocmask(SIG_SETMASK, &before, nullptr);
        work();
        _exit(127);
    }
    // Ends of others' pipes that were open when this process was made would never seem closed to them.
    dup2(ends[1], 3);
    close_range(4, ~0u, 0);
    close(0), close(1), close(2);
    const int signals = signalfd(-1, &watched, SFD_CLOEXEC);
    if (child < 0 || signals < 0) _exit(1);
    supervise(3, signals, child);
}

Supervised::~Supervised() { end(); }

bool Supervised::ends_within(std::chrono::milliseconds time) {
    if (known_ || supervisor_ < 0) return true;
    pollfd wait{leash_, POLLIN, 0};
    const auto end = std::chrono::steady_clock::now() + time;
    int ready;
    do {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
        ready = poll(&wait, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) return false;
    ssize_t n;
    while ((n = recv(leash_, &status_, sizeof status_, 0)) < 0 && errno == EINTR) {}
    if (n != sizeof status_) status_ = SIGKILL;  // the supervisor was killed, and the child with it
    return known_ = true;
}

int Supervised::end() {
    if (supervisor_ < 0) return status_;
    shutdown(leash_, SHUT_WR);
    ends_within(std::chrono::hours(1));
    while (waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) {}
    close(leash_);
    supervisor_ = leash_ = -1;
    return status_;
}

}  // namespace tessera

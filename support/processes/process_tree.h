// A child process that ends with all that it started, whoever ends it.
//
// Killing a process, its group or its session misses what has left them (`setsid`, daemons), and nobody kills anything when the
// owner itself is killed. So a supervisor stands between this process and the child. Orphaned descendants become its children
// (PR_SET_CHILD_SUBREAPER), and it ends all of them when its owner asks for it or is gone. Linux only.
#pragma once
#include <chrono>
#include <functional>

namespace tessera {

class Supervised {
public:
    // Runs `work`, which does not return, in a child that leads a session of its own. The thread that starts the child must outlive
    // it. UserError machine.exhausted when there can be no more processes or open files.
    explicit Supervised(const std::function<void()> &work);
    ~Supervised();
    Supervised(const Supervised &) = delete;
    Supervised &operator=(const Supervised &) = delete;

    // Can be read from once the child has ended; for poll.
    int leash() const { return leash_; }
    // Whether the child ends by itself within that time. What it started may run on.
    bool ends_within(std::chrono::milliseconds time);
    // Ends the child and all that it started. Gives the child's status as waitpid has it; further calls give the same.
    int end();

private:
    int supervisor_ = -1, leash_ = -1, status_ = 0;
    bool known_ = false;
};

}  // namespace tessera

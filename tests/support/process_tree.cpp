#include "support/processes/process_tree.h"

#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "support/files/output_folder.h"
#include "tests/support/left_running.h"

namespace tessera::test_process_tree {

using namespace tessera::test;
using std::chrono::milliseconds;

static void exec_shell(const std::string &script) { execl("/bin/sh", "sh", "-c", script.c_str(), static_cast<char *>(nullptr)); }

TEST_CASE("how a supervised process ended is told") {
    Supervised three([] { _exit(3); });
    CHECK(three.ends_within(milliseconds(5000)));
    CHECK(WEXITSTATUS(three.end()) == 3);
    CHECK(WEXITSTATUS(three.end()) == 3);
    Supervised crashed([] {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    });
    CHECK(crashed.ends_within(milliseconds(5000)));
    CHECK(WTERMSIG(crashed.end()) == SIGSEGV);
    Supervised hanging([] { exec_shell("trap '' TERM; sleep 1000"); });
    CHECK(!hanging.ends_within(milliseconds(50)));
    CHECK(WTERMSIG(hanging.end()) == SIGKILL);
}

// Two generations down, in a session of its own, and its parents gone.
static std::string detached(const std::string &command) {
    return "(setsid setsid sh -c 'trap \"\" TERM HUP; " + command + " & exec " + command + "' &) & exec " + command;
}

TEST_CASE("what has left the session of a supervised process ends with it") {
    const std::string command = long_sleep();
    {
        Supervised process([&] { exec_shell(detached(command)); });
        REQUIRE(becomes(3, command));
    }
    CHECK(running(command) == 0);
}

TEST_CASE("a supervised process ends with its owner, however that ends") {
    const std::string command = long_sleep();
    for (int signal : {SIGKILL, SIGTERM}) {
        const pid_t owner = fork();
        if (owner == 0) {
            ::signal(SIGTERM, SIG_DFL);
            Supervised first([&] { exec_shell(detached(command)); });
            Supervised second([&] { exec_shell(detached(command)); });
            while (true) pause();
        }
        REQUIRE(becomes(6, command));
        kill(owner, signal);
        waitpid(owner, nullptr, 0);
        CHECK(becomes(0, command));
    }
}

TEST_CASE("a supervised process does not outlive its supervisor") {
    const std::string command = long_sleep();
    Supervised process([&] { exec_shell("exec " + command); });
    REQUIRE(becomes(1, command));
    // The only child of this process is the supervisor.
    const std::string children = read_file("/proc/thread-self/children");
    kill(std::stoi(children), SIGKILL);
    CHECK(becomes(0, command));
    CHECK(WTERMSIG(process.end()) == SIGKILL);
}

}  // namespace tessera::test_process_tree

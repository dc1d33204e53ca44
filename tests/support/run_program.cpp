#include "support/processes/run_program.h"

#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

#include "support/files/output_folder.h"
#include "tests/support/left_running.h"
#include "tests/support/words.h"

namespace tessera::test_run_program {

using namespace tessera::test;

static const Activity asking = {"a tool", "asking", "tool.limit", "Ask another", "--ask-limit-s"};

TEST_CASE("a program that is run says how it ended, and what it said") {
    const TemporaryFolder folder;
    const auto log = folder.path() / "log";
    auto status = [&](const std::vector<std::string> &words) { return *run_program(asking, {10}, words, log); };
    CHECK(succeeded(status({"sh", "-c", "echo out; echo err >&2; cat"})));  // there is nothing to read
    CHECK(read_file(log) == "out\nerr\n");
    CHECK(ended_text(status({"sh", "-c", "exit 1"})) == "exit code 1");
    CHECK(ended_text(status({"sh", "-c", "exit 2"})) == "exit code 2");
    CHECK(ended_text(status({"sh", "-c", "kill -9 $$"})) == "signal 9");
    CHECK(ended_text(status({"no-such-program"})) == "exit code 127");
    CHECK(ended_text(status({folder.path().string()})) == "exit code 126");
    CHECK(!succeeded(status({"false"})));
}

TEST_CASE("a program that hangs is ended with all that it started, at its limit or when it is stopped") {
    const TemporaryFolder folder;
    const std::string command = long_sleep();
    const std::vector<std::string> words = {"sh", "-c", "trap '' TERM INT; (setsid " + command + " &); " + command + "; true"};
    const auto start = std::chrono::steady_clock::now();
    check_words([&] { run_program(asking, {0.5}, words, folder.path() / "log"); },
                {"error[tool.limit]: a tool: asking was stopped; expected it to end within 0.5 s. Ask another, or raise --ask-limit-s."});
    CHECK(becomes(0, command));
    CHECK(!run_program(asking, {100}, words, folder.path() / "log", [&] { return running(command) == 2; }).has_value());
    CHECK(becomes(0, command));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("a program that hangs ends with who runs it, also where that is a limited process") {
    const TemporaryFolder folder;
    const std::string command = long_sleep();
    for (bool nested : {false, true}) {
        const pid_t owner = fork();
        if (owner == 0) {
            const auto hang = [&] { run_program(asking, {1000}, {"sh", "-c", command + "; true"}, folder.path() / "log"); };
            if (nested) run_limited(asking, {1000}, hang);
            else hang();
            _exit(0);
        }
        CHECK(becomes(1, command));
        kill(owner, SIGKILL);
        waitpid(owner, nullptr, 0);
        CHECK(becomes(0, command));
    }
}

}  // namespace tessera::test_run_program

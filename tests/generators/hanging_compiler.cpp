// A C compiler that hangs, as on a file system that is gone, hangs no command, and is left behind by none.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/generators/harness.h"
#include "tests/support/left_running.h"

namespace tessera::test_hanging_compiler {

using namespace tessera::test;

namespace {

// A "cc" that minds no signal and sleeps, first on the PATH while this lives.
class HangingCompiler {
public:
    HangingCompiler() : path_(std::getenv("PATH")) {
        write_file(folder_.path() / "cc", "#!/bin/sh\ntrap '' TERM INT HUP\n" + sleeps + "; true\n");
        std::filesystem::permissions(folder_.path() / "cc", std::filesystem::perms::owner_all);
        setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
    }
    ~HangingCompiler() { setenv("PATH", path_.c_str(), 1); }
    HangingCompiler(const HangingCompiler &) = delete;
    HangingCompiler &operator=(const HangingCompiler &) = delete;

    const std::string sleeps = long_sleep();
    std::string place(const std::string &name) const { return (folder_.path() / name).string(); }

private:
    TemporaryFolder folder_;
    std::string path_;
};

pid_t started(std::vector<std::string> words) {
    words.insert(words.begin(), TESSERA_GENERATOR);
    const pid_t child = fork();
    if (child != 0) return child;
    std::vector<char *> argv;
    for (std::string &word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    for (int number : {SIGINT, SIGTERM}) signal(number, SIG_DFL);
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
    execv(argv[0], argv.data());
    _exit(127);
}

bool ends_within_seconds(pid_t process) {
    for (int i = 0; i < 500; i++) {
        if (waitpid(process, nullptr, WNOHANG) == process) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    return false;
}

bool runs_soon(const std::string &command) {
    for (int i = 0; i < 20; i++)
        if (becomes(1, command)) return true;
    return false;
}

}  // namespace

TEST_CASE("a C compiler that hangs reaches a limit") {
    const HangingCompiler compiler;
    const std::string said =
        "error[compile.limit]: the C compiler 'cc': compiling was stopped; expected it to end within 2 s. Find out what it "
        "waits for, or raise --compile-limit-s.";
    check_refused({"tune", "matmul", "--cc", "cc", "--schedule", "none", "--quiet", "--compile-limit-s", "2", "--shape", "M=4", "N=4",
                   "K=4", "--records", compiler.place("tune.db"), "--out", compiler.place("out")},
                  {said});
    CHECK(becomes(0, compiler.sleeps));
}

TEST_CASE("who is told to end while a C compiler hangs ends, and the compiler with it") {
    const HangingCompiler compiler;
    const std::vector<std::string> tune = {"tune",
                                           "matmul",
                                           "--cc",
                                           "cc",
                                           "--schedule",
                                           "none",
                                           "--quiet",
                                           "--shape",
                                           "M=4",
                                           "N=4",
                                           "K=4",
                                           "--records",
                                           compiler.place("tune.db"),
                                           "--out",
                                           compiler.place("out")};
    for (int number : {SIGTERM, SIGINT, SIGKILL}) {
        INFO("signal " << number);
        const pid_t process = started(tune);
        CHECK(runs_soon(compiler.sleeps));
        kill(process, number);
        CHECK(ends_within_seconds(process));
        CHECK(becomes(0, compiler.sleeps));
    }
}

}  // namespace tessera::test_hanging_compiler

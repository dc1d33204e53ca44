#include "support/processes/line_process.h"

#include <catch2/catch.hpp>

#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "support/files/output_folder.h"
#include "tests/support/shell.h"
#include "tests/support/words.h"

namespace tessera::test_line_process {

using namespace tessera::test;

static LineProcess::Clock::time_point in(double seconds) {
    return LineProcess::Clock::now() + std::chrono::duration_cast<LineProcess::Clock::duration>(std::chrono::duration<double>(seconds));
}

TEST_CASE("a process is spoken to by lines and bytes") {
    const TemporaryFolder folder;
    LineProcess cat("cat", 0, folder.path() / "log");
    CHECK(cat.write("one\ntwo and more\nabcdef", in(5)));
    CHECK(cat.line(in(5)) == "one");
    CHECK(cat.line(in(5)) == "two and more");
    char bytes[6];
    CHECK(cat.read(bytes, 6, in(5)));
    CHECK(std::string(bytes, 6) == "abcdef");
}

TEST_CASE("how a process ended is told") {
    const TemporaryFolder folder;
    auto ended = [&](const std::string &command) {
        LineProcess process(command, 0, folder.path() / "log");
        CHECK(!process.line(in(0.5)));
        return process.ended();
    };
    CHECK(ended("sh -c 'echo some reason >&2; exit 3'") == "it ended with code 3: some reason");
    CHECK(ended("sh -c 'kill -SEGV $$'") == "it ended by signal 11 (Segmentation fault)");
    CHECK(ended("sleep 100") == "it did not answer in time");
    CHECK(ended("true") == "it ended in the middle");
    CHECK(ended("sh -c 'head -c 3000000 /dev/zero | tr \\\\0 a >&2; echo the end >&2; exit 3'") ==
          "it ended with code 3: " + std::string(293, 'a') + "the end");
    CHECK_THAT(ended("/no/such/program"), Catch::Contains("it ended with code 127"));
}

TEST_CASE("what hangs and ignores signals is ended with all that it started") {
    const TemporaryFolder folder;
    const std::string mark = "36000." + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count() % 1000000);
    {
        LineProcess process("sh -c 'trap \"\" TERM INT HUP; sleep " + mark + " & sleep " + mark + "'", 0, folder.path() / "log");
        CHECK(!process.line(in(0.3)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(shell("pgrep -f 'sleep " + mark + "' | grep -v \"^$$\\$\" | wc -l").out.substr(0, 1) <= "1");  // the shell that looks
}

TEST_CASE("endless and silent output reaches its limits") {
    const TemporaryFolder folder;
    LineProcess noise("sh -c 'while :; do printf xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done'", 0, folder.path() / "log");
    CHECK(!noise.line(in(5)));
    LineProcess deaf("sleep 50", 0, folder.path() / "log2");
    CHECK(!deaf.write(std::string(size_t{1} << 24, 'x'), in(0.3)));
    LineProcess large("sh -c 'exec python3 -c \"x = bytearray(1 << 30); print(1)\"'", uint64_t{1} << 28, folder.path() / "log3");
    CHECK(!large.line(in(5)));
}

TEST_CASE("a process whose log is gone is ended all the same, and one that cannot be started says what to do") {
    const TemporaryFolder folder;
    {
        LineProcess gone("sh -c 'echo some reason >&2; echo said; cat > /dev/null'", 0, folder.path() / "log");
        CHECK(gone.line(in(5)) == "said");
        std::filesystem::remove(folder.path() / "log");
        std::filesystem::create_directory(folder.path() / "log");
    }
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    for (rlim_t most = 4; most < 9; most++) {
        const rlimit few{most, before.rlim_max};
        setrlimit(RLIMIT_NOFILE, &few);
        const std::string said = words([&] { LineProcess("cat", 0, folder.path() / "log"); });
        setrlimit(RLIMIT_NOFILE, &before);
        if (most == 4)
            CHECK(said ==
                  "error[machine.exhausted]: a socket to another process: expected room for one more process or open file; Too many open "
                  "files. Let less run at a time "
                  "(--jobs, fewer --runner), or raise the limits (ulimit -n, ulimit -u).");
        else CHECK((said == "no error" || said.starts_with("error[machine.exhausted]")));
    }
}

}  // namespace tessera::test_line_process

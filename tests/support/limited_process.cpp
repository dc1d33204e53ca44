#include "support/processes/limited_process.h"

#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "support/files/output_folder.h"
#include "tests/support/shell.h"
#include "tests/support/words.h"

namespace tessera::test_limited_process {

using namespace tessera::test;

static std::string internal_words(const std::function<void()> &work) {
    try {
        run_limited(compiling("k"), {}, work);
    } catch (const InternalError &error) { return error.what(); }
    return "no error";
}

TEST_CASE("limited work may write files and changes nothing else") {
    const TemporaryFolder folder;
    int here = 0;
    run_limited(compiling("k"), {}, [&] { here = 1, write_file(folder.path() / "made", "text"); });
    CHECK(here == 0);
    CHECK(read_file(folder.path() / "made") == "text");
}

TEST_CASE("errors of limited work arrive as what they are") {
    check_words([] { run_limited(compiling("k"), {}, [] { throw UserError("some.id", "words, of two\nlines"); }); },
                {"error[some.id]: words, of two\nlines"});
    CHECK(internal_words([] { throw InternalError("broken"); }) == InternalError("k: broken").what());
    CHECK(internal_words([] { throw std::runtime_error("foreign"); }) == InternalError("k: foreign").what());
    CHECK_THAT(internal_words([] { raise(SIGSEGV); }),
               Catch::Contains("k: the process for compiling ended by signal 11 (Segmentation fault)"));
    CHECK_THAT(internal_words([] { _exit(7); }), Catch::Contains("k: the process for compiling ended with code 7"));
}

TEST_CASE("work that takes too long is stopped with all that it started") {
    const TemporaryFolder folder;
    const auto start = std::chrono::steady_clock::now();
    check_words(
        [&] {
            run_limited(compiling("k"), {0.3}, [&] {
                if (fork() == 0) {
                    std::this_thread::sleep_for(std::chrono::seconds(2));
                    write_file(folder.path() / "late", "");
                }
                while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
            });
        },
        {"error[compile.limit]: k: compiling was stopped; expected it to end within 0.3 s. Unroll less (smaller micro tiles, fewer "
         "variants), or raise --compile-limit-s."});
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
    std::this_thread::sleep_for(std::chrono::milliseconds(2300));
    CHECK(!std::filesystem::exists(folder.path() / "late"));
}

TEST_CASE("a file that the machine does not let grow is no error of ours") {
    const TemporaryFolder folder;
    check_words(
        [&] {
            run_limited(compiling("k"), {}, [&] {
                const rlimit most{4096, 4096};
                setrlimit(RLIMIT_FSIZE, &most);
                write_file(folder.path() / "large", std::string(10000, 'x'));
            });
        },
        {"error[output.write]: k: compiling was stopped, since a file would have been larger than this machine lets it be; expected room "
         "for it. Raise the limit (ulimit -f)."});
}

#ifndef __SANITIZE_ADDRESS__
TEST_CASE("work that takes too much memory is stopped") {
    // The second one is more than any vector can have.
    for (const size_t bytes : {size_t{2} << 30, SIZE_MAX / 2 + 2})
        check_words(
            [bytes] {
                run_limited(compiling("k"), {60, uint64_t{1} << 30}, [bytes] {
                    std::vector<char> large(bytes);
                    write_file("/dev/null", large.data());
                });
            },
            {"error[compile.limit]: k: compiling was stopped; expected it to need at most 1 GiB of memory. Unroll less (smaller micro "
             "tiles, "
             "fewer variants)."});
}
#endif

}  // namespace tessera::test_limited_process

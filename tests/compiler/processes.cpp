#include "compiler/emit/halide/processes.h"

#include <catch2/catch.hpp>

#include <unistd.h>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>

#include "support/text/error.h"

namespace tessera::test_processes {

TEST_CASE("jobs leave what they wrote and nothing else") {
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("tessera-processes-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    int runs = 0;
    std::vector<std::function<void()>> jobs;
    for (int i = 0; i < 7; i++) jobs.push_back([&runs, folder, i] { std::ofstream(folder / std::to_string(i)) << i + runs++; });
    emit::in_processes(jobs);
    CHECK(runs == 0);
    for (int i = 0; i < 7; i++) {
        std::ifstream file(folder / std::to_string(i));
        CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == std::to_string(i));
    }
    emit::in_processes({jobs[0]});
    CHECK(runs == 1);
    std::filesystem::remove_all(folder);
}

static std::string words_of(const std::vector<std::function<void()>> &jobs) {
    try {
        emit::in_processes(jobs);
    } catch (const InternalError &error) { return error.what(); }
    return "no error";
}

TEST_CASE("what a job throws is thrown") {
    auto nothing = [] {};
    CHECK_THAT(words_of({nothing, [] { throw std::runtime_error("no such register"); }, nothing}), Catch::Contains("no such register"));
    CHECK_THROWS_AS(emit::in_processes({nothing, [] { throw std::bad_alloc(); }}), std::bad_alloc);
    CHECK_THAT(words_of({[] { _exit(3); }, nothing}), Catch::Contains("a compiling process ended without saying why"));
    try {
        emit::in_processes({nothing, [] { throw UserError("output.write", "the disk is full"); }});
        FAIL("no error");
    } catch (const UserError &error) {
        CHECK(error.id() == "output.write");
        CHECK(error.what() == std::string("error[output.write]: the disk is full"));
    }
}

TEST_CASE("a failure ends the jobs that run beside it") {
    const auto start = std::chrono::steady_clock::now();
    CHECK_THAT(words_of({[] { throw std::runtime_error("no"); }, [] { sleep(60); }}), Catch::Contains("no"));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

}  // namespace tessera::test_processes

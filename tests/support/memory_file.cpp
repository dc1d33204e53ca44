#include "support/files/memory_file.h"

#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace tessera::test_memory_file {

TEST_CASE("a file in memory holds what is written to its path, by this process or by one that it forked") {
    const MemoryFile file, other;
    CHECK(file.path() != other.path());
    CHECK(file.text().empty());
    std::ofstream(file.path()) << "first, and longer";
    CHECK(file.text() == "first, and longer");
    const std::string large(300000, 'x');
    const pid_t child = fork();
    if (child == 0) {
        std::ofstream(file.path()) << large;
        _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(file.text() == large);
    CHECK(other.text().empty());
}

}  // namespace tessera::test_memory_file

#include "support/processes/in_parallel.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::test_in_parallel {

TEST_CASE("work in parallel is done once for each number") {
    for (size_t count : {0, 1, 2, 7, 1000}) {
        std::vector<std::atomic<int>> calls(count);
        for_each_in_parallel(count, [&](size_t i) { calls[i]++; });
        for (const std::atomic<int> &c : calls) CHECK(c == 1);
    }
}

TEST_CASE("of what work in parallel throws the first by number is thrown, after all is done") {
    std::atomic<size_t> done = 0;
    try {
        for_each_in_parallel(100, [&](size_t i) {
            done++;
            if (i == 17 || i == 70) throw std::runtime_error(std::to_string(i));
        });
        FAIL("expected an exception");
    } catch (const std::runtime_error &error) { CHECK(std::string(error.what()) == "17"); }
    CHECK(done == 100);
}

}  // namespace tessera::test_in_parallel

#include "bench/measure/evict.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <vector>

namespace tessera::test_evict {

// A walk from line to line in no order that could be foretold: half a megabyte lies in a cache of any processor that this is built for.
TEST_CASE("what lay in the caches is displaced", "[.time]") {
    constexpr size_t lines = 8192, step = 8;
    std::vector<size_t> order(lines), next(lines * step);
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (size_t i = 0; i < lines; i++) next[order[i] * step] = order[(i + 1) % lines] * step;
    size_t at = order[0] * step;
    auto seconds = [&] {
        const auto start = std::chrono::steady_clock::now();
        for (size_t i = 0; i < lines; i++) at = next[at];
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    auto least = [&](bool cold) {
        double all = 1;
        for (int i = 0; i < 9; i++) {
            if (cold) REQUIRE(evict_caches() == 0);
            all = std::min(all, seconds());
        }
        return all;
    };
    seconds();
    const double warm = least(false), cold = least(true);
    INFO(warm << " s, cold " << cold << " s, at " << at);
    CHECK(cold > 2 * warm);
}

}  // namespace tessera::test_evict

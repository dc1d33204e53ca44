#include "bench/measure/stable_timing.h"

#include <sched.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <set>
#include <thread>

namespace tessera::test_stable_timing {

static void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST_CASE("a round lasts as long as its slowest thread") {
    const Steady s = steady(2, [](int worker) { sleep_ms(worker ? 4 : 0); }, {1, 0.01, 0.2});
    CHECK(s.best_s >= 0.004);
    CHECK(s.median_s >= s.best_s);
    CHECK(s.rounds >= 8);
    CHECK(s.spread >= 0);
}

TEST_CASE("every thread works in every round, each with its own number") {
    std::atomic<int> calls[3] = {0, 0, 0};
    const Steady s = steady(3, [&](int worker) { calls[worker]++; }, {1, 0.005, 0.05});
    for (const auto &n : calls) CHECK(n == calls[0]);
    CHECK(calls[0] > s.rounds);  // some warmed up
}

TEST_CASE("measuring ends when time is up, however unsteady the work is") {
    const auto start = std::chrono::steady_clock::now();
    int call = 0;
    const Steady s = steady(1, [&](int) { sleep_ms(call++ % 2 ? 1 : 3); }, {1e-9, 0.01, 0.1});
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
    CHECK(s.spread > 1e-9);
}

TEST_CASE("each worker stays on one processor, and the caller where it was") {
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    std::set<int> seen;
    steady(1, [&](int) { seen.insert(sched_getcpu()); }, {1, 0.01, 0.02});
    CHECK(seen.size() == 1);
    sched_getaffinity(0, sizeof after, &after);
    CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("repetitions are the smallest power of two that takes long enough") {
    CHECK(repetitions([](long) { sleep_ms(2); }, 0.001) == 1);
    // Sleeps are never too short, but on a busy machine any of them may be too long.
    std::map<long, double> took;
    const long n = repetitions(
        [&](long count) {
            const auto start = std::chrono::steady_clock::now();
            sleep_ms(static_cast<int>(count));
            took[count] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        },
        0.005);
    CHECK(n <= 8);
    for (long count = 1; count < n; count *= 2) CHECK(took.at(count) < 0.005);
    CHECK(took.rbegin()->first == n);
}

}  // namespace tessera::test_stable_timing

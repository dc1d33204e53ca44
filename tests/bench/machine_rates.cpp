#include "bench/measure/machine_rates.h"

#include <catch2/catch.hpp>

namespace tessera::test_machine_rates {

static Machine sample_machine() {
    Machine machine;
    machine.threads = 4, machine.memory_bytes = int64_t{8} << 30;
    machine.caches = {{1, 32 << 10, 2}, {2, 1 << 20, 2}, {3, 32 << 20, 4}};
    return machine;
}

TEST_CASE("levels that a machine does not show are as large as the one below") {
    Machine machine = sample_machine();
    CHECK(cache_bytes(machine)->l3 == 32 << 20);
    machine.caches.pop_back();
    CHECK(cache_bytes(machine)->l3 == 1 << 20);
    machine.caches.clear();
    CHECK(!cache_bytes(machine));
}

TEST_CASE("working sets fit their level and not the one below") {
    const Machine machine = sample_machine();
    const CacheBytes caches = *cache_bytes(machine);
    const auto sets = working_sets(caches, machine);
    REQUIRE(sets.size() == 4);
    CHECK(sets.at("l1").one < 32u << 10);
    CHECK((sets.at("l2").one > 32u << 10 && sets.at("l2").one < 1u << 20));
    CHECK((sets.at("l3").one > 1u << 20 && 4 * sets.at("l3").all <= 32u << 20));
    CHECK(sets.at("memory").one == 128u << 20);
    CHECK(4 * sets.at("memory").all >= 128u << 20);
    Machine small = machine;
    small.caches.resize(1);
    CHECK(working_sets(*cache_bytes(small), small).size() == 2);  // with no more levels, memory is behind the first
}

TEST_CASE("rates are of this machine, and there is none of vectors that it does not have") {
    const Precision quick{0.5, 0.001, 0.02};
    REQUIRE(peak_rate(PEAK_F32, 16, 1, quick));
    CHECK(peak_rate(PEAK_F32, 16, 1, quick)->one_thread > 1e7);
    CHECK(!peak_rate(PEAK_BF16, 16, 1, quick));
    MovedMemory memory({4096, 4096}, 2);
    for (const Move move : {Move::read, Move::copy}) {
        const MachineRate rate = memory.rate(move, 16, quick);
        CHECK((rate.one_thread > 1e7 && rate.all_threads > 1e7));
    }
}

}  // namespace tessera::test_machine_rates

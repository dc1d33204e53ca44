#include "support/containers/address_map.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <string>

namespace tessera::test_address_map {

TEST_CASE("a map from addresses keeps what was added, few or many") {
    std::mt19937 random(1);
    std::vector<int> things(3000);
    for (size_t most : {1u, 12u, 13u, 3000u}) {
        AddressMap<std::string> map;
        std::map<const void *, std::string> expected;
        for (int step = 0; step < 6000; step++) {
            const void *key = &things[random() % most];
            REQUIRE((map.find(key) != nullptr) == (expected.count(key) > 0));
            const auto [value, fresh] = map.add(key);
            REQUIRE(fresh == !expected.count(key));
            REQUIRE(*value == expected[key]);
            *value = expected[key] = std::to_string(step);
        }
        CHECK(map.size() == expected.size());
        for (const auto &[key, value] : expected) REQUIRE(*map.find(key) == value);
        int absent = 0;
        CHECK(map.find(&absent) == nullptr);
    }
}

TEST_CASE("a set of addresses tells what is new") {
    AddressSet set;
    int a = 0, b = 0;
    CHECK(set.insert(&a));
    CHECK(set.insert(&b));
    CHECK_FALSE(set.insert(&a));
}

}  // namespace tessera::test_address_map

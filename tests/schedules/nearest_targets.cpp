#include "schedules/target/nearest_targets.h"

#include <catch2/catch.hpp>

namespace tessera::test_nearest_targets {

using Names = std::vector<std::string>;

TEST_CASE("a target takes what is made for itself, then for those whose features it has too, then for the one it stands in for") {
    CHECK(nearest_targets(target_named("avx512")) == Names{"avx512", "avx2", "x86-64"});
    CHECK(nearest_targets(target_named("x86-64")) == Names{"x86-64"});
    CHECK(nearest_targets(target_named("arm64")) == Names{"arm64"});
    CHECK(nearest_targets(target_named("avx512+avx512_vnni")).front() == "avx512+avx512_vnni");
    for (const std::string &name : target_names()) {
        INFO(name);
        const Target target = target_named(name);
        const Names nearest = nearest_targets(target);
        CHECK(nearest.front() == target.name);
        for (const std::string &other : nearest) {
            const Target of = target_named(other);
            CHECK((of.arch == target.arch || other == target.stands_in));
        }
    }
}

}  // namespace tessera::test_nearest_targets

// Every kernel with fixed extents at their limit is made, or refused with words.
#include <catch2/catch.hpp>

#include <set>

#include "algorithms/text/hash.h"
#include "algorithms/transform/bind_extents.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "schedules/knobs/schedule.h"
#include "support/text/error.h"
#include "tests/compiler/cases.h"
#include "tests/support/thorough.h"

namespace tessera::test_limits {

using namespace tessera::test;

static std::vector<Extents> at_their_limit(const Algorithm &a) {
    std::vector<Extents> all(1);
    for (const Dim &d : a.dims)
        if (d.kind == DimKind::symbolic && d.equals.empty()) all.push_back({{d.name, max_extent}}), all[0][d.name] = max_extent;
    return all;
}

TEST_CASE("extents at their limit are compiled or refused") {
    const Target target = target_named("x86-64");
    std::set<std::string> seen;
    int64_t made = 0, refused = 0;
    for (const Case &c : library_cases(4)) {
        if (!seen.insert(semantic_hash(c.algorithm)).second) continue;
        if (seen.size() % every(2) != 0) continue;
        INFO(c.name);
        for (const Extents &extents : at_their_limit(c.algorithm)) try {
                const TileProgram program = lower(bind_extents(c.algorithm, extents), {}, target);
                verify(program);
                Loaded library({program}, target);
                made++;
            } catch (const UserError &) { refused++; } catch (const std::exception &e) {
                FAIL_CHECK(e.what());
            }
    }
    CHECK(made > 20);
    CHECK(refused > 20);
}

}  // namespace tessera::test_limits

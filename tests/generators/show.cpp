#include "generators/show.h"

#include "tests/generators/harness.h"

using namespace tessera;
using namespace tessera::test;

TEST_CASE("show prints each level of a kernel") {
    auto shown = [](const std::vector<std::string> &more) {
        std::vector<std::string> arguments = {"show", "matmul", "--target", "avx2", "--quiet"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const Outcome outcome = generator(arguments);
        INFO(outcome.err);
        CHECK(outcome.code == 0);
        return outcome.out;
    };
    CHECK_THAT(shown({}), Catch::StartsWith("algorithm matmul: f32") && Catch::Contains("y[M, N]: f32 = dot over K of (x[M, K], w[K, N])"));
    CHECK_THAT(shown({"--numerics", "f64", "--shape", "K=7"}), Catch::StartsWith("algorithm matmul: f64") && Catch::Contains("K = 7"));
    CHECK_THAT(shown({"--what", "tiles", "--schedule", "none", "--shape", "N=3"}), Catch::StartsWith("tile program matmul for avx2") && Catch::Contains("< 3"));
    CHECK_THAT(shown({"--what", "assembly", "--schedule", "none"}), Catch::Contains("matmul.avx2.variant0.body"));
    CHECK(shown({"--what", "schedule", "--schedule", "none"}) == "no schedule: every stage at root, in plain loops\n");
}

TEST_CASE("show merges a schedule's ancestors and separates its variants") {
    Registry registry = sample_registry();
    registry.add_schedule([] { return Schedule("matmul/base").stage("y", block({{"M", 4}})); });
    registry.add_schedule([] { return Schedule("matmul/child").extends("matmul/base").stage("y", block({{"N", 8}})).variant({"M <= 2"}, "y", block({{"M", 2}})); });
    const Outcome merged = generator({"show", "matmul", "--schedule", "matmul/child", "--what", "schedule"}, registry);
    CHECK_THAT(merged.out, Catch::Contains("{\"M\": 4, \"N\": 8}") && !Catch::Contains("extends"));
    const Outcome tiles = generator({"show", "matmul", "--schedule", "matmul/child", "--what", "tiles"}, registry);
    CHECK_THAT(tiles.out, Catch::StartsWith("# M <= 2\ntile program matmul") && Catch::Contains("# otherwise\ntile program matmul"));
}

TEST_CASE("show says which schedule it took") {
    Registry registry = sample_registry();
    CHECK_THAT(generator({"show", "ring_append", "--what", "tiles", "--target", "x86-64"}).err,
               Catch::Contains("note: ring_append on x86-64: no schedule, plain loops; --schedule chooses another\n"));
    registry.add_schedule([] { return Schedule("matmul/x86-64").stage("y", block({{"M", 4}})); });
    CHECK(generator({"show", "matmul", "--what", "tiles", "--target", "x86-64"}, registry).err == "note: matmul on x86-64: schedule 'matmul/x86-64'; --schedule chooses another\n");
    CHECK(generator({"show", "matmul", "--what", "tiles", "--target", "x86-64", "--quiet"}, registry).err == "");
}

TEST_CASE("show's errors") {
    check_refused({"show", "matmull"}, {"error[generator.unknown-algorithm]", "Did you mean 'matmul'?"});
    check_refused({"show", "matmul", "--what", "colour"}, {"error[command.arguments]: tessera-generator show: --what: colour not in {algorithm,schedule,tiles,assembly}"});
    check_refused({"show", "matmul", "--shape", "N=-1"}, {"error[command.shape]: --shape 'N=-1'"});
}

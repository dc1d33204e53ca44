#include "autotune/search/tuned_schedule.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "autotune/space/search_space.h"
#include "compiler/lower/lower.h"
#include "schedules/artifact/merge.h"
#include "tests/autotune/kernels.h"

namespace tessera::test_tuned_schedule {

using namespace tessera::test;

static Schedule parent() {
    return Schedule("matmul/base")
        .stage("y", block({{"M", 96}}).micro({{"M", 8}, {"N", 48}}).vector({{"N", 16}}).pack("w", "micro.N", {"N/48", "K", "N%48"}))
        .variant({"M <= 16"}, "y", StageKnobs().micro({{"M", 4}}));
}

TEST_CASE("a tuned schedule resolves to what was tuned, with a parent and without") {
    const Algorithm a = bind_extents(library::linear_gelu({}), {{"M", 96}, {"N", 192}, {"K", 64}});
    Library library;
    library.add(Schedule("linear_gelu/base")
                    .stage("acc", block({{"M", 32}}).micro({{"M", 8}, {"N", 48}}))
                    .stage("y", StageKnobs().vector({{"N", 16}})));
    RandomNumbers random(4);
    for (int i = 0; i < 40; i++) {
        auto stages = realize({a, target_named("avx512"), {}, 1, {}, {}}, sampling(random));
        std::erase_if(stages, [](const auto &s) { return s.second == Knobs{}; });
        const Schedule alone = tuned_schedule("linear_gelu/tuned", stages, {}, library, {});
        CHECK(resolve(alone, library).stages == stages);
        const Schedule child = tuned_schedule("linear_gelu/tuned", stages, library.find("linear_gelu/base"), library, {"avx512f"});
        auto resolved = resolve(child, library).stages;
        std::erase_if(resolved, [](const auto &s) { return s.second == Knobs{}; });
        CHECK(resolved == stages);
        CHECK(Schedule::parse(child.text(), "again") == child);
    }
}

TEST_CASE("a child states what differs, deletes what is gone, and has no variants") {
    Library library;
    library.add(parent());
    auto stages = resolve(parent(), library).stages;
    stages["y"].micro["M"] = 6;
    stages["y"].block.clear();
    const Schedule child = tuned_schedule("matmul/tuned", stages, parent(), library, {});
    CHECK(child.parent_name() == "matmul/base");
    CHECK(child.document()["stages"] == nlohmann::json::parse(R"({"y": {"block": null, "micro": {"M": 6}}})"));
    CHECK(child.document()["variants"].is_null());
    CHECK(resolve(child, library).variants.empty());
}

TEST_CASE("calls keep the schedules that they took where the parent is extended, and take none where everything is stated") {
    Library library;
    library.add(Schedule("p").stage("up", StageKnobs().use("linear/x")).stage("y", StageKnobs().vector({{"N", 8}}).unroll({{"K", 4}})));
    Fields inherited = merged(library.find("p"), library);
    inherited[{"stages", "up.acc", "micro", "N"}] = {16, "linear/x at up", {}, 0};
    KnobsByStage stages = resolve(library.find("p"), library).stages;
    stages["up.acc"].micro = {{"N", 8}};
    stages["down"].use = "none";
    const Schedule child = tuned_schedule("t", stages, library.find("p"), inherited, {});
    CHECK(child.parent_name() == "p");
    CHECK(child.document()["stages"] == nlohmann::json::parse(R"({"down": {"use": "none"}, "up.acc": {"micro": {"N": 8}}})"));
    CHECK(tuned_schedule("t", stages, {}, library, {}).document()["stages"]["up"]["use"] == "none");
}

TEST_CASE("knobs are compared and taken back one by one") {
    Library library;
    library.add(parent());
    const auto before = resolve(parent(), library).stages;
    auto after = before;
    after["y"].micro["M"] = 6, after["y"].block.clear(), after["z"].vector = {{"N", 8}};
    const auto differing = differing_knobs(after, before);
    CHECK(differing == std::vector<std::pair<std::string, std::string>>{{"y", "block"}, {"y", "micro"}, {"z", "vector"}});
    auto undone = after;
    for (const auto &[stage, knob] : differing) undone = with_knob_of(undone, before, stage, knob);
    std::erase_if(undone, [](const auto &s) { return s.second == Knobs{}; });
    CHECK(undone == before);
}

}  // namespace tessera::test_tuned_schedule

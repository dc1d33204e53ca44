#include "autotune/search/ablation.h"

#include <catch2/catch.hpp>

#include "autotune/search/tuned_schedule.h"
#include "compiler/lower/lower.h"
#include "tests/autotune/kernels.h"

namespace tessera::test_ablation {

using namespace tessera::test;

namespace {

KnobsByStage product(const Extents &tile, const std::vector<std::string> &parallel, int64_t unroll) {
    Knobs y;
    y.micro = tile, y.vector = {{"N", 8}}, y.parallel = parallel, y.unroll = {{"K", unroll}};
    return {{"y", y}};
}

struct Winner {
    const SearchSpace space{bind_extents(library::matmul({}), {{"M", 96}, {"N", 192}, {"K", 64}}), target_named("avx2"), {}, 1, {}, {}};
    const std::unique_ptr<CostModel> model = roofline_model();
    const Search search{space, {}, *model};
    const Candidate base = made(product({{"N", 16}}, {}, 1)), best = made(product({{"M", 6}, {"N", 16}}, {"micro.M"}, 4));

    Candidate made(const KnobsByStage &stages) const {
        const std::optional<Candidate> one = search.candidate_of(stages, "mutation");
        REQUIRE(one.has_value());
        return *one;
    }
};

}  // namespace

TEST_CASE("an ablation takes one change back, and says where the others need it") {
    const Winner w;
    const std::vector<AblationCandidate> all = ablations_of(w.best, w.base, w.search, 10);
    std::vector<std::string> knobs;
    for (const AblationCandidate &a : all) {
        knobs.push_back(a.ablation.knob);
        if (!a.without) continue;
        CHECK(a.without->origin == "ablation");
        CHECK(differing_knobs(a.without->stages, w.best.stages) ==
              std::vector<std::pair<std::string, std::string>>{{"y", a.ablation.knob}});
    }
    CHECK(knobs == std::vector<std::string>{"micro", "parallel", "unroll"});
    CHECK(!all[0].without);  // there are no rows of tiles to be parallel
    CHECK(ablation_text(all[0].ablation) == "the others need it");
    CHECK(ablations_of(w.best, w.base, w.search, 2).size() == 2);
    CHECK(ablations_of(w.base, w.base, w.search, 10).empty());
}

TEST_CASE("what is better without some of its changes is proposed without the worst and without all that harm") {
    const Winner w;
    std::vector<AblationCandidate> all = ablations_of(w.best, w.base, w.search, 10);
    REQUIRE(all.size() == 3);
    SearchSpace space = w.space;
    auto simpler = [&](double parallel, double unroll, Verdict of_unroll = Verdict::measured) {
        all[1].ablation.without = Verdict::measured, all[1].ablation.gain = parallel;
        all[2].ablation.without = of_unroll, all[2].ablation.gain = unroll;
        return without_harm(all, w.best, w.base, w.search, space);
    };
    CHECK(simpler(1.2, 0.99).empty());
    const auto one = simpler(1.2, 0.8);
    REQUIRE(one.size() == 1);
    CHECK(one[0].resolved == all[2].without->resolved);
    const auto both = simpler(0.7, 0.8);
    REQUIRE(both.size() == 2);
    CHECK(both[0].resolved == all[1].without->resolved);
    CHECK(both[1].stages.at("y").parallel.empty());
    CHECK(both[1].stages.at("y").unroll == w.base.stages.at("y").unroll);
    CHECK(simpler(1.2, 0.5, Verdict::wrong).empty());  // it may not win
    space.restrictions = parse_restrictions({"unroll.K=4"});
    CHECK(simpler(1.2, 0.8).empty());
}

}  // namespace tessera::test_ablation

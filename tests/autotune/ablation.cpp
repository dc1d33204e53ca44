#include "autotune/search/ablation.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

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

TEST_CASE("an ablation takes one change back, or the few that the others need") {
    const Winner w;
    const std::vector<AblationCandidate> all = ablations_of(w.best, w.base, w.search, *w.model, 10);
    std::vector<std::string> texts;
    for (const AblationCandidate &a : all) {
        texts.push_back(changes_text(a.ablation));
        REQUIRE(a.without);
        CHECK(a.without->origin == "ablation");
        const auto differing = differing_knobs(a.without->stages, w.best.stages);
        CHECK(std::set(differing.begin(), differing.end()) == std::set(a.ablation.changes.begin(), a.ablation.changes.end()));
    }
    // There are no rows of tiles to be parallel without tiles.
    CHECK(texts == std::vector<std::string>{"y.parallel", "y.unroll", "y.micro, y.parallel together"});
    CHECK(ablations_of(w.base, w.base, w.search, *w.model, 10).empty());
    CHECK(ablations_of(w.best, w.base, w.search, *w.model, 0).empty());
}

// A law: whatever the winner is, each of its changes that makes a program is told of, all that is proposed lowers, and no group could be
// smaller.
TEST_CASE("each change of any winner is told of, and groups hold no more than they must") {
    const Winner w;
    RandomNumbers random(3);
    size_t grouped = 0;
    for (int n = 0; n < 12; n++) {
        const std::optional<Candidate> best = w.search.candidate_of(realize(w.space, sampling(random)), "sample");
        if (!best) continue;
        const auto changes = differing_knobs(best->stages, w.base.stages);
        std::set<std::pair<std::string, std::string>> told, idle;
        auto without = [&](std::vector<std::pair<std::string, std::string>> some) {
            KnobsByStage rest = best->stages;
            for (const auto &[stage, knob] : some) rest = with_knob_of(rest, w.base.stages, stage, knob);
            return w.search.candidate_of(rest, "ablation");
        };
        for (const AblationCandidate &a : ablations_of(*best, w.base, w.search, *w.model, 100)) {
            REQUIRE(a.without);
            CHECK(a.without->resolved != best->resolved);
            told.insert(a.ablation.changes.begin(), a.ablation.changes.end());
            if (a.ablation.changes.size() == 1) continue;
            grouped++;
            for (size_t i = 1; i < a.ablation.changes.size(); i++) {
                auto fewer = a.ablation.changes;
                fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
                CHECK(!without(fewer));
            }
        }
        for (const auto &change : changes)
            if (const auto one = without({change}); !one || one->resolved != best->resolved) CHECK(told.count(change) == 1);
    }
    CHECK(grouped > 0);
}

TEST_CASE("of more changes than are to be measured, those of which the model expects most are") {
    const Winner w;
    const std::vector<AblationCandidate> all = ablations_of(w.best, w.base, w.search, *w.model, 10),
                                         one = ablations_of(w.best, w.base, w.search, *w.model, 1);
    REQUIRE(one.size() == all.size());
    std::vector<Featured> features;
    for (const AblationCandidate &a : all) features.push_back(a.without->features);
    const std::vector<double> scores = w.model->predict(features);
    const size_t worst = static_cast<size_t>(std::min_element(scores.begin(), scores.end()) - scores.begin());
    for (size_t i = 0; i < one.size(); i++) {
        CHECK(one[i].without.has_value() == (i == worst));
        if (i != worst) CHECK(one[i].ablation.without == Verdict::unmeasured);
    }
}

TEST_CASE("the list of what changes are worth is sorted by worth, and what has no number says why at its end") {
    const Ablation little{{{"y", "unroll"}}, 1.0123, 1, 1.02, Verdict::measured},
        much{{{"y", "micro"}, {"y", "parallel"}}, 2.5, 2, 3, Verdict::measured}, wrong{{{"acc", "k"}}, 0, 0, 0, Verdict::timed_out},
        needed{{{"acc", "pack"}}, 0, 0, 0, Verdict::refused}, left{{{"x", "place"}}, 0, 0, 0, Verdict::unmeasured},
        other{{{"x", "tail"}}, 0, 0, 0, Verdict::unmeasured};
    std::vector<Ablation> all = {left, little, wrong, other, much, needed};
    sort_by_worth(all);
    CHECK(ablation_rows(all) ==
          std::vector<std::pair<std::string, std::string>>{{"2.500", "y.micro, y.parallel together"},
                                                           {"1.012", "y.unroll"},
                                                           {"-", "acc.k (without it: timed out)"},
                                                           {"-", "acc.pack (the others need it)"},
                                                           {"-", "x.place; x.tail (not measured)"}});
}

TEST_CASE("what is better without some of its changes is proposed without the worst and without all that harm") {
    const Winner w;
    std::vector<AblationCandidate> all = ablations_of(w.best, w.base, w.search, *w.model, 10);
    REQUIRE(all.size() == 3);
    SearchSpace space = w.space;
    auto simpler = [&](double parallel, double unroll, Verdict of_unroll = Verdict::measured) {
        all[0].ablation.without = Verdict::measured, all[0].ablation.gain = parallel;
        all[1].ablation.without = of_unroll, all[1].ablation.gain = unroll;
        return without_harm(all, w.best, w.base, w.search, space);
    };
    CHECK(simpler(1.2, 0.99).empty());
    const auto one = simpler(1.2, 0.8);
    REQUIRE(one.size() == 1);
    CHECK(one[0].resolved == all[1].without->resolved);
    const auto both = simpler(0.7, 0.8);
    REQUIRE(both.size() == 2);
    CHECK(both[0].resolved == all[0].without->resolved);
    CHECK(both[1].stages.at("y").parallel.empty());
    CHECK(both[1].stages.at("y").unroll == w.base.stages.at("y").unroll);
    CHECK(simpler(1.2, 0.5, Verdict::wrong).empty());  // it may not win
    space.restrictions = parse_restrictions({"unroll.K=4"});
    CHECK(simpler(1.2, 0.8).empty());
}

}  // namespace tessera::test_ablation

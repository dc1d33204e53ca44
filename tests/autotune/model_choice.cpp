#include "autotune/search/model_choice.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "compiler/lower/lower.h"
#include "tests/autotune/kernels.h"

namespace tessera::test_model_choice {

using namespace tessera::test;

TEST_CASE("the model alone chooses the same schedule every time, also for machines that are not here") {
    for (const char *target : {"x86-64", "arm64"}) {
        CampaignTask t;
        t.space = {bind_extents(library::matmul({}), {{"M", 64}, {"N", 96}, {"K", 64}}), target_named(target), {}, 1, {}, {}};
        t.base = KnobsByStage{{"y", Knobs()}};
        CampaignOptions o;
        o.trials = 25, o.batch = 6, o.search.population = 24;
        const auto model = roofline_model();
        const CampaignResult first = choose_by_model(t, o, *model), second = choose_by_model(t, o, *model);
        CHECK(first.trials.size() == 25);
        CHECK(first.improved);
        CHECK(first.best.resolved == second.best.resolved);
        CHECK(first.measurement.ratio > 1);
        const auto best =
            std::max_element(first.trials.begin(), first.trials.end(), [](const Trial &a, const Trial &b) { return a.score < b.score; });
        CHECK(best->resolved == first.best.resolved);
        o.search.seed = 7;
        const CampaignResult other = choose_by_model(t, o, *model);
        CHECK(other.trials[3].resolved != first.trials[3].resolved);
    }
}

TEST_CASE("where nothing scores higher the base is the choice") {
    CampaignTask t;
    t.space = {bind_extents(library::matmul({}), {{"M", 64}, {"N", 96}, {"K", 64}}), target_named("x86-64"), {}, 1, {}, {}};
    CampaignOptions o;
    o.trials = 1;
    const auto model = roofline_model();
    CHECK(!choose_by_model(t, o, *model).improved);
}

}  // namespace tessera::test_model_choice

// Lesson 8: what a schedule is worth before anybody compiles it.
//
// A tile program says every loop, load and register tile, so what it does can be counted. From the counts come a draft of its
// time and a row of named features; a cost model orders candidates by them, and learns from what was measured.
#include <cmath>
#include <cstdio>

#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "costmodel/model/cost_model.h"
#include "support/text/error.h"

using namespace tessera;

static const Target target = target_named("avx2");
static const Algorithm product = bind_extents(library::matmul(numerics_named("f32")), {{"M", 96}, {"N", 192}, {"K", 256}});

static Featured featured(const Knobs &knobs, bool print) {
    const TileProgram program = lower(product, {{"y", knobs}}, target);
    const Profile profile = profile_of(program, {}, target, 1);
    if (print)
        std::printf("%.0f multiply-adds, %.0f loads, %.0f broadcasts, %.0f accumulators, waiting for results %.0f %% of the time\n",
                    profile.fma, profile.loads, profile.broadcasts, profile.accumulators, 100 * profile.chained / profile.core_time);
    return features_of(profile, work_of(product, program, all_extents(product, {})), target, 1);
}

int main() {
    // The same product under three schedules: lanes alone; a register tile; one that is too narrow to hide the latency.
    Knobs lanes, tile, narrow;
    lanes.vector = tile.vector = narrow.vector = {{"N", 8}};
    tile.micro = {{"M", 6}, {"N", 16}}, narrow.micro = {{"M", 1}, {"N", 16}};
    const std::vector<Featured> candidates = {featured(lanes, true), featured(tile, true), featured(narrow, true)};

    // The draft: the time by the roofline, over the time below which no schedule can go, here that of the fastest processors of this kind.
    for (const Featured &f : candidates) std::printf("%.1f times the bound\n", f.draft / f.bound);

    // A model orders candidates of one task. Nothing was learnt yet, so this is the draft's order; a higher score is faster.
    const std::unique_ptr<CostModel> model = boosted_model();
    std::vector<double> scores = model->predict(candidates);
    require(scores[1] > scores[2] && scores[2] > scores[0], "the register tile comes first, lanes alone last");

    // What is measured teaches it. Say that this machine likes the narrow tile best, which no draft would guess.
    std::vector<Example> measured;
    for (int i = 0; i < 8; i++) {
        measured.push_back({"product", candidates[0], 4e-3});
        measured.push_back({"product", candidates[1], 2e-3});
        measured.push_back({"product", candidates[2], 1e-3});
    }
    model->update(measured);
    scores = model->predict(candidates);
    std::printf("%s\n", scores[2] > scores[1] ? "learnt: the narrow tile is faster here" : "still by the draft");

    // Every feature has a name, a unit and a sentence; `tessera cost-model features` prints them all.
    std::printf("%s (%s): %s\n", feature_table()[0].name.c_str(), feature_table()[0].unit.c_str(), feature_table()[0].meaning.c_str());
}

// Output:
// 589824 multiply-adds, 589824 loads, 589824 broadcasts, 1 accumulators, waiting for results 75 % of the time
// 589824 multiply-adds, 98304 loads, 294912 broadcasts, 12 accumulators, waiting for results 0 % of the time
// 589824 multiply-adds, 589824 loads, 294912 broadcasts, 2 accumulators, waiting for results 62 % of the time
// 17.1 times the bound
// 2.1 times the bound
// 8.6 times the bound
// learnt: the narrow tile is faster here
// draft (log2 s): seconds that the roofline of the program predicts, over those that bound the algorithm

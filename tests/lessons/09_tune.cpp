// Lesson 9: tune.
//
// `tessera tune <algorithm> --shape …` does what this program does by hand: it derives a space of schedules from an algorithm and a
// target, measures what the model thinks best, and makes an artifact of the winner. No kernel is known by name; the algorithm
// here is one that Tessera has never seen.
#include <cstdio>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "autotune/search/campaign.h"
#include "autotune/search/tuned_schedule.h"
#include "compiler/lower/lower.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"

using namespace tessera;

// d[A, B] = sum over D of (x[A, D] - y[B, D])^2
static Algorithm squared_distances() {
    Builder f("squared_distances", numerics_named("f32"));
    const Dim A = f.dim("A"), B = f.dim("B"), D = f.dim("D");
    const Tile x = f.input("x", {A, D}), y = f.input("y", {B, D});
    const Tile gap = (x - y).named("gap");            // (A, B, D)
    return f.output("d", sum(gap * gap, D)).build();  // (A, B)
}

int main() {
    const TemporaryFolder folder;
    const Target target = target_named("avx2");
    const Algorithm algorithm = bind_extents(squared_distances(), {{"A", 64}, {"B", 48}, {"D", 32}});

    // The space asks decisions; each answer narrows the next ones. Here is one walk through it, always the most likely answer.
    CampaignTask task;
    task.space = {algorithm, target, {}, 1, {}, {}};
    task.name = "squared_distances";
    task.identity = {{"task", task.name}};
    Trace trace;
    realize(task.space, recording(most_likely, trace));
    for (const auto &[decision, answer] : trace) std::printf("%s = %s\n", decision.c_str(), answer.c_str());

    // The schedule to beat: plain loops. Every trial goes into the records as it is made, so a campaign that is killed goes on.
    task.base = KnobsByStage{};
    CampaignOptions options;
    options.trials = 6, options.batch = 3, options.ablations = 0, options.search.population = 24, options.measure.seconds = 0.05;
    Records records(folder.path() / "tune.db");
    const std::unique_ptr<CostModel> model = boosted_model();
    const CampaignResult result = run_campaign(task, options, *model, records, {});
    require(result.improved, "lanes beat plain loops");
    std::printf("%zu trials, %s\n", result.trials.size(),
                result.measurement.lower > 1.5 ? "surely faster than plain loops" : "not much faster");

    // The winner as an artifact. It extends nothing, since plain loops have no name; with a parent it would state what differs.
    const Library library;
    const Schedule tuned = tuned_schedule("squared_distances/tuned", result.best.stages, {}, library, {});
    require(!tuned.document()["stages"].empty(), "it says how");
}

// Output:
// d.block.B = none
// d.micro.A = 14
// d.micro.B = 8
// d.order.micro = A:B
// d.pack.x = none
// d.pack.y = root
// d.parallel = 1
// d.tail.A = mask
// d.unroll.D = 1
// d.vector = B
// gap.inline = yes
// 6 trials, surely faster than plain loops

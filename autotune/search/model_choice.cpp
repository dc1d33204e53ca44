#include "autotune/search/model_choice.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "support/text/error.h"

namespace tessera {

CampaignResult choose_by_model(const CampaignTask &task, const CampaignOptions &options, CostModel &model) {
    const auto start = std::chrono::steady_clock::now();
    Search search(task.space, options.search, model);
    const KnobsByStage stages = first_stages(task);
    CampaignResult result;
    Candidate &base = result.base = search.made_of(stages, "base");
    base.score = model.predict({base.features}).front();
    result.best = base;
    search.keep_as(stages);
    const auto stopped = [&] { return options.stop && options.stop->load(); };
    search.stop_when(stopped);
    if (options.seeded) search.seed(stages);
    for (const auto &warm_start : task.warm_starts) search.seed(warm_start);

    auto keep = [&](const Candidate &c) {
        Trial t;
        t.number = static_cast<int64_t>(result.trials.size()), t.origin = c.origin, t.resolved = c.resolved;
        t.draft = c.features.draft, t.bound = c.features.bound, t.score = c.score;
        result.trials.push_back(t);
        if (c.score > result.best.score) result.best = c;
    };
    keep(base);
    while (static_cast<int>(result.trials.size()) < options.trials) {
        std::vector<Candidate> batch = search.propose(static_cast<size_t>(options.batch));
        if (stopped())
            throw UserError("tune.stopped",
                            task.name + ": stopped before all candidates were judged; nothing is written. The same command begins again.");
        if (batch.empty()) break;
        batch.resize(std::min(batch.size(), static_cast<size_t>(options.trials) - result.trials.size()));
        std::vector<double> goodness;
        for (const Candidate &c : batch) keep(c), goodness.push_back(std::exp2(c.score - base.score));
        search.learn(batch, goodness, {});
    }
    result.improved = result.best.resolved != base.resolved;
    result.measurement.ratio = std::exp2(result.best.score - base.score);
    result.made = search.made(), result.refused = search.refused(), result.impossible = search.impossible(),
    result.other_bits = search.other_bits(), result.scored = search.scored(), result.score_s = search.scoring_s();
    result.search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
}

}  // namespace tessera

// A tuning campaign: a search, what measures its proposals, and the records that both are kept in.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "autotune/measure/metric.h"
#include "autotune/records/records.h"
#include "autotune/search/ablation.h"
#include "autotune/search/search.h"

namespace tessera {

constexpr int max_trials = 1000000;  // of one campaign: no limit

struct CampaignOptions {
    int trials = 64;     // candidates to measure
    double seconds = 0;  // to search for at most; 0 for no limit
    int batch = 4;       // candidates that are built together, before the model learns from them; more where there are more runners
    int finalists = 4;   // of the best, measured again in several processes
    int ablations = 10;  // most changes of the winner, or groups of them, without which it is measured
    SearchOptions search;
    MeasureOptions measure;
    Goal goal;            // what is to be small
    bool seeded = true;   // the search begins with the base; otherwise candidates are only compared with it
    bool resume = false;  // go on with the last campaign of the same key; all of its trials count, even if they are more than `trials`
    const std::atomic<bool> *stop = nullptr;        // ends the search where it is
    std::function<void(const std::string &)> note;  // is told with what it goes on
};

// What is tuned, from what, with what knowledge.
struct CampaignTask {
    SearchSpace space;
    std::string name;                           // "matmul/f32/avx512 M=512 N=768 K=3072": groups what the model learns
    nlohmann::ordered_json identity;            // all that proposals depend on beside options and measurements
    std::optional<KnobsByStage> base;           // the schedule to beat; none: the space's most likely one
    std::vector<KnobsByStage> warm_starts;      // schedules of like kernels, to begin with
    std::vector<std::string> warm_start_names;  // of those that have one, for people
    StatedInputs inputs = {};                   // what is stated of the data
};
// What a campaign begins with: the schedule to beat, or what is taken where there is none (search.h).
KnobsByStage first_stages(const CampaignTask &task);

enum class Phase : uint8_t { searching, confirming, weighing };  // weighing: what each change of the winner is worth

struct Progress {
    Phase phase = Phase::searching;
    int trials = 0, budget = 0;
    int recorded = 0;       // trials that the records had when it began
    double best_ratio = 0;  // gain_over of the best
    double best_seconds = 0, base_seconds = 0, bound_seconds = 0, elapsed_s = 0;
    std::map<Verdict, int> verdicts;
};

struct CampaignResult {
    Candidate base, best;     // the best is no trial where it is one without some of its changes ("ablation")
    Measurement measurement;  // of the best, confirmed
    Measurement base_measurement;
    double base_seconds = 0;
    double gain = 1;        // gain_over of the best
    bool improved = false;  // the best is not the base, and its gain is surely above 1
    bool stopped = false;   // before all trials of its budget
    bool confirmed = true;  // the best was measured again, unless that was stopped too
    std::vector<Trial> trials;
    std::vector<std::pair<std::string, Measurement>> finalists;  // by the hash of the program, as they were measured again
    std::vector<Ablation> ablations;
    Progress progress;
    size_t made = 0, refused = 0;        // schedules that the search made, and those among them that do not lower
    size_t other_bits = 0;               // those that give other bits than the base, where these are kept
    size_t impossible = 0;               // those that the roofline drafts faster than their work can be done (search.h)
    size_t scored = 0;                   // by the cost model
    double search_s = 0, measure_s = 0;  // making, scoring and learning; compiling, checking and timing
    double score_s = 0;                  // of search_s
};

// One that is taken further a batch at a time, so that several share a budget.
class Campaign {
public:
    // Measures the base. What is handed in outlives the campaign; `model` is taught as it goes on. With `resume`, seeds are those that
    // the campaign began with, whatever `warm_starts` are. Throws as Records and Measurer do, and UserError tune.base.
    Campaign(const CampaignTask &task, const CampaignOptions &options, CostModel &model, Records &records,
             std::function<void(const Progress &)> show);
    ~Campaign();
    Campaign(const Campaign &) = delete;
    Campaign &operator=(const Campaign &) = delete;

    // Measures one more batch, or `most` of it; false where the budget or the space is exhausted, or it was stopped.
    bool step(size_t most = SIZE_MAX);
    const Progress &progress() const;
    // Confirms the best, and measures what each change is worth. What is faster without some of them becomes the best, if that is
    // confirmed too.
    CampaignResult finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

// All steps, and the end.
CampaignResult run_campaign(const CampaignTask &task, const CampaignOptions &options, CostModel &model, Records &records,
                            const std::function<void(const Progress &)> &show);

}  // namespace tessera

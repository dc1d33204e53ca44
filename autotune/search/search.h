// Evolution over the schedules of a space: a model ranks what is proposed, what is measured teaches the model, and the best
// become the parents of what comes next. Proposals depend on the seed and on the measurements alone, so a campaign can be replayed
// from its records.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autotune/measure/measure.h"
#include "autotune/space/search_space.h"
#include "costmodel/model/cost_model.h"

namespace tessera {

// What a kernel is run with: extents of its symbolic dims, and threads.
struct Workload {
    Extents extents;
    int threads = 1;
};

struct Candidate {
    std::string origin;  // "base", "seed", "sample", "mutation", "crossover", "ablation"
    Trace trace;         // empty for a schedule from outside of the space
    std::vector<Decision> asked;
    KnobsByStage stages;
    TileProgram program;    // of what is proposed, or made by candidate_of
    uint64_t identity = 0;  // of the program, within this process
    std::string resolved;   // its hash, of what is proposed
    Featured features;
    std::vector<Featured> further;  // the same of SearchOptions::further
    std::vector<double> scores;     // by workload, the space's own first
    double score = 0;               // their mean
};

// The version of the rules by which proposals follow from seed and measurements: a campaign goes on from records of the same version alone.
constexpr int search_version = 5;

struct SearchOptions {
    uint64_t seed = 1;
    int population = 96;        // candidates made for each batch; for the first one, of which the model alone decides, six times as many
    int brood = 8;              // children of the same ranking
    double exploration = 0.12;  // of all that is proposed: samples, whatever their score
    // Workloads at which candidates are judged beside the space's own, for a schedule that serves all of them.
    std::vector<Workload> further = {};
    size_t keep = 0;  // of the best at each workload: what best_at gives
    // It is asked to explore alone: what has the knobs of another candidate is not lowered again, programs stay until they are proved, and
    // what keeps guards is not proved at length (lower_candidate).
    bool explores = false;
    // What every candidate has as the schedule has it that keep_as is told: the bits of its results, and for other numbers of threads than
    // the space's own what these share.
    bool keep_bits = false, keep_parallel = false;
};

// What a campaign begins with where there is no schedule to beat: the most likely answers; plain loops where those do not fit, are not
// shown to be safe, or are slower by the roofline. UserError as realize, where restrictions leave no answer.
KnobsByStage first_stages(const SearchSpace &space);

class Search {
public:
    // `model` outlives the search.
    Search(const SearchSpace &space, const SearchOptions &options, CostModel &model);

    // A candidate of given knobs. UserError where they do not fit: as check, lower and check_code_size.
    Candidate made_of(const KnobsByStage &stages, const std::string &origin) const;
    // The same, or nothing.
    std::optional<Candidate> candidate_of(const KnobsByStage &stages, const std::string &origin) const;
    // With keep_bits, folds are split as in this schedule from now on, and what has other reduction trees all the same (reduction_trees.h)
    // is refused before it is lowered. UserError as made_of.
    void keep_as(const KnobsByStage &stages);
    // Seeds the population: the nearest schedule that the space has is proposed in the next batch, and may become a parent.
    void seed(const KnobsByStage &stages);

    // Once it says so, no further candidate is made.
    void stop_when(const std::function<bool()> &stopped) { stopped_ = stopped; }
    // Up to `count` candidates that were not proposed before, the most promising first; fewer where the space is exhausted.
    std::vector<Candidate> propose(size_t count);
    // So many more candidates, that the model alone judges: samples, and children of the best of all that were made so. Parents are proved.
    void explore(size_t count);
    double best_explored() const { return explored_.empty() ? -INFINITY : explored_.front().score; }
    // Whether its program is shown to be safe, in as many steps of the prover as a search has time for.
    bool is_safe(const Candidate &candidate);
    // What making and proving candidates took so far, by index_work; the same on every machine.
    int64_t work() const { return spent_; }
    // What came of them; `goodness` is 0 for failures, otherwise the higher, the better.
    void learn(const std::vector<Candidate> &candidates, const std::vector<double> &goodness, const std::vector<Example> &examples);

    // What sampling and breeding gave that could not be lowered, is too much code, or is not shown to be safe, among all.
    size_t made() const { return made_; }
    size_t refused() const { return refused_; }
    // What would give other bits than those that are to be kept, among all that was made; it is not counted as refused.
    size_t other_bits() const { return other_bits_; }
    // The best at a workload, 0 for the space's own, of all that the model scored, best first; without their programs.
    const std::vector<Candidate> &best_at(size_t workload) const { return best_[workload]; }
    // What the roofline drafts faster than a processor could do what the program has left to do. It is an error of the cost model, and none
    // of it is proposed.
    size_t impossible() const { return impossible_; }
    // Candidates that the model scored, and the seconds that took.
    size_t scored() const { return scored_; }
    double scoring_s() const { return scoring_s_; }

private:
    SearchSpace space_;
    SearchOptions options_;
    CostModel &model_;
    RandomNumbers random_;
    std::string bits_;                          // to keep; "": any
    std::optional<Profile> kept_;               // of the schedule whose parallel loops are to keep
    Choose as_kept_;                            // answers as the schedule that has them
    std::vector<Workload> workloads_;           // the space's own first
    std::vector<Work> work_;                    // at each
    std::vector<std::vector<Candidate>> best_;  // at each
    std::set<uint64_t> proposed_;               // identities
    std::vector<Candidate> seeds_;              // not in a pool yet
    std::vector<Candidate> unproposed_;         // the best of the last pool that were left over
    std::vector<Candidate> explored_;           // the best of them
    std::map<uint64_t, bool> safe_;             // by identity
    std::set<std::string> known_stages_;        // of all candidates, where it explores
    bool asked_ = false;                        // for proposals
    struct Parent {
        Candidate candidate;
        double goodness = 0;
    };
    std::vector<Parent> parents_;  // measured, best first
    double to_explore_ = 0;        // samples that are due, with the fraction that batches leave
    size_t made_ = 0, refused_ = 0, other_bits_ = 0, impossible_ = 0, scored_ = 0;
    int64_t spent_ = 0;
    double scoring_s_ = 0;
    std::function<bool()> stopped_;

    // What becomes of an answer: its knobs are drawn one by one, in the order of random numbers, and completed by several threads.
    std::optional<Candidate> draw(const Choose &choose, const std::string &origin);
    std::vector<Candidate> make(std::vector<Candidate> drawn);
    TileProgram program_of(const Candidate &candidate) const;
    bool gives_other_bits(const KnobsByStage &stages) const;
    void complete(Candidate &candidate) const;
    void prove(const std::vector<const Candidate *> &candidates);
    std::vector<Candidate> samples_of(size_t count);
    void breed(std::vector<Candidate> &pool, size_t population, std::set<uint64_t> &seen, bool of_safe = false);
    std::vector<size_t> elite_of(const std::vector<Candidate> &pool, bool of_safe);
    Trace mutated(const Candidate &parent);
    Trace crossed(const Candidate &a, const Candidate &b);
    void score(std::vector<Candidate> &all);
    void keep_best(const std::vector<Candidate> &all);
};

}  // namespace tessera

#include "autotune/search/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "algorithms/index/work.h"
#include "algorithms/transform/inline_calls.h"
#include "autotune/search/tuned_schedule.h"
#include "autotune/space/decisions_from_schedule.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/compile/lower_variants.h"
#include "compiler/lower/lower.h"
#include "compiler/lower/reduction_trees.h"
#include "compiler/tile/tile_identity.h"
#include "support/processes/in_parallel.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr size_t max_parents = 24;
constexpr size_t few_parents = 4;  // measured ones, which are parents more rarely than the model's best
constexpr size_t elite = 16;       // of a pool, that have children
constexpr size_t max_unproposed = 64;
constexpr int first_batch = 6;             // times the population
constexpr int fresh_part = 5;              // one of so many is a sample, the others are bred
constexpr double alike = 0.15;             // of the answers, given to all decisions about such a knob
constexpr int64_t max_proof_steps = 20000;  // of a parent's program: some tenths of a second
constexpr size_t max_explored = 256;
constexpr double many_threads = 8;
constexpr double least_used = 0.9;  // of them, of those that the schedule to keep uses
constexpr double min_seed = 2;      // how far below the best score a seed is worth a trial, in log2

int differences(const Trace &a, const Trace &b) {
    int count = 0;
    for (const auto &[name, value] : a) {
        auto other = b.find(name);
        count += other == b.end() || other->second != value;
    }
    for (const auto &[name, value] : b) count += !a.count(name);
    return count;
}

// Whether both are about such a knob, as "unroll.N.o" and "unroll.K" are.
bool are_alike(const Decision &a, const Decision &b) {
    auto kind = [](const Decision &of) { return of.knob.substr(0, of.knob.find('.')); };
    return kind(a) == kind(b);
}

size_t position_of(const Decision &d, const std::string &value) {
    const auto at = std::find_if(d.answers.begin(), d.answers.end(), [&](const Answer &a) { return a.value == value; });
    require(at != d.answers.end(), "a trace has an answer of each decision that was asked");
    return static_cast<size_t>(at - d.answers.begin());
}

// To answer `d` by that value, or by the one nearest to it; to leave it as it is where it has no such.
void answer_alike(Trace &trace, const Decision &d, const std::string &value) {
    std::string &answer = trace.at(d.name());
    const size_t now = position_of(d, answer);
    answer = d.answers[replaying({{d.name(), value}}, [now](const Decision &) { return now; })(d)].value;
}

// Towards the better of a sorted list.
size_t tournament(RandomNumbers &random, size_t size) {
    size_t best = static_cast<size_t>(random.below(static_cast<int64_t>(size)));
    for (int round = 0; round < 2; round++) best = std::min(best, static_cast<size_t>(random.below(static_cast<int64_t>(size))));
    return best;
}

// The indices of a pool, from the highest score to the lowest.
std::vector<size_t> ranking(const std::vector<Candidate> &pool) {
    std::vector<size_t> order(pool.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return pool[a].score > pool[b].score; });
    return order;
}

TileProgram lowered(const SearchSpace &space, const KnobsByStage &stages, std::optional<int64_t> max_steps = std::nullopt) {
    return lower_candidate(space.algorithm, stages, space.target, max_steps);
}

}  // namespace

// What there is to do, whatever the schedule.
static Work work_in(const SearchSpace &space, const Extents &extents) {
    return work_of(space.algorithm, lower(space.algorithm, {}, space.target), all_extents(space.algorithm, extents));
}

static Profile profile_in(const SearchSpace &space, const Workload &workload, const TileProgram &program) {
    const Extents extents = all_extents(program, all_extents(space.algorithm, workload.extents));
    return profile_of(program, extents, space.target, workload.threads);
}

static Featured features_in(const SearchSpace &space, const Workload &workload, const Work &work, const TileProgram &program) {
    return features_of(profile_in(space, workload, program), work, space.target, workload.threads);
}

// The seconds that the roofline gives it; nothing where it does not fit, or is not shown to be safe.
static std::optional<double> draft_in(const SearchSpace &space, const Work &work, const KnobsByStage &stages) {
    try {
        const TileProgram program = lowered(space, stages);
        if (!is_proved(program)) return std::nullopt;
        return features_in(space, {space.extents, space.threads}, work, program).draft;
    } catch (const UserError &) { return std::nullopt; }
}

// How many of the threads have work.
static double used_threads(const Profile &p) {
    const double workers = p.parallel / std::ceil(p.parallel / many_threads);
    return p.core_time > 0 ? p.core_time / (p.alone + (p.core_time - p.alone) / workers) : workers;
}

// On one thread nothing is lost with a loop that many threads would share, or with one that they enter again and again, so a search would
// give up the one and take the other.
static bool is_as_parallel(const Profile &p, const Profile &as) {
    return used_threads(p) >= least_used * used_threads(as) && p.regions <= std::max(2 * as.regions, 1.0);
}

KnobsByStage first_stages(const SearchSpace &space) {
    const KnobsByStage likely = realize(space, most_likely);
    const Work work = work_in(space, space.extents);
    const std::optional<double> draft = draft_in(space, work, likely), plain = draft_in(space, work, {});
    if (!draft) return {};
    const bool is_worse = plain && *plain < *draft && !space.target.is_gpu();  // of which plain loops use one thread
    return is_worse ? KnobsByStage() : likely;
}

// Functions are put in once, and not for each candidate.
static SearchSpace expanded_space(SearchSpace space) {
    space.algorithm = expanded(std::move(space.algorithm));
    return space;
}

Search::Search(const SearchSpace &space, const SearchOptions &options, CostModel &model)
    : space_(expanded_space(space)), options_(options), model_(model), random_(options.seed), workloads_(options.further) {
    workloads_.insert(workloads_.begin(), {space.extents, space.threads});
    for (const Workload &workload : workloads_) work_.push_back(work_in(space, workload.extents));
    best_.resize(workloads_.size());
}

// The order of a fold's loops and slices may change bits too, and mostly does not.
static bool decides_bits(const Decision &d) { return d.knob == "instruction" || d.knob.starts_with("split."); }

void Search::keep_as(const KnobsByStage &stages) {
    if (options_.keep_bits) {
        bits_ = reduction_trees(space_.algorithm, stages).hash;
        as_kept_ = decisions_from_schedule(stages, most_likely);
    }
    if (options_.keep_parallel) kept_ = profile_in(space_, workloads_[0], lowered(space_, stages));
}

bool Search::gives_other_bits(const KnobsByStage &stages) const {
    return !bits_.empty() && reduction_trees(space_.algorithm, stages).hash != bits_;
}

TileProgram Search::program_of(const Candidate &candidate) const {
    return lowered(space_, candidate.stages, options_.explores ? std::optional(max_proof_steps) : std::nullopt);
}

void Search::complete(Candidate &c) const {
    c.program = program_of(c);
    c.identity = identity_of(c.program);
    const Profile profile = profile_in(space_, workloads_[0], c.program);
    if (kept_ && !is_as_parallel(profile, *kept_))
        throw UserError("tune.parallel", "many threads would have less to share than in the schedule to beat");
    c.features = features_of(profile, work_[0], space_.target, space_.threads);
    c.further.clear();
    for (size_t i = 1; i < workloads_.size(); i++) c.further.push_back(features_in(space_, workloads_[i], work_[i], c.program));
}

Candidate Search::made_of(const KnobsByStage &stages, const std::string &origin) const {
    Candidate c;
    c.origin = origin, c.stages = stages;
    complete(c);
    c.resolved = resolved_hash(c.program);
    return c;
}

std::optional<Candidate> Search::candidate_of(const KnobsByStage &stages, const std::string &origin) const {
    try {
        if (gives_other_bits(stages)) return std::nullopt;
        return made_of(stages, origin);
    } catch (const UserError &) { return std::nullopt; }
}

std::optional<Candidate> Search::draw(const Choose &choose, const std::string &origin) {
    if (stopped_ && stopped_()) return std::nullopt;
    made_++;
    Candidate c;
    c.origin = origin;
    const Choose kept = [&](const Decision &d) { return as_kept_ && decides_bits(d) ? as_kept_(d) : choose(d); };
    try {
        c.stages = realize(space_, recording(kept, c.trace, &c.asked));
        if (options_.explores && !known_stages_.insert(document_of(c.stages).dump()).second) return std::nullopt;
        if (gives_other_bits(c.stages)) {
            other_bits_++;
            return std::nullopt;
        }
    } catch (const UserError &error) {
        if (is_authors(error)) throw;
        refused_++;
        return std::nullopt;
    }
    return c;
}

// `f` for each number, whose index_work is added up.
template <typename Work>
static void counted(size_t count, int64_t &spent, const Work &f) {
    std::vector<int64_t> work(count, 0);
    for_each_in_parallel(count, [&](size_t i) {
        const int64_t before = index_work;
        f(i);
        work[i] = index_work - before;
    });
    spent = std::accumulate(work.begin(), work.end(), spent);
}

std::vector<Candidate> Search::make(std::vector<Candidate> drawn) {
    std::vector<char> is_refused(drawn.size(), 0);
    counted(drawn.size(), spent_, [&](size_t i) {
        try {
            complete(drawn[i]);
            if (!options_.explores) drawn[i].program = {};  // some take megabytes, and few are proposed
        } catch (const UserError &error) {
            if (is_authors(error)) throw;
            is_refused[i] = 1;
        }
    });
    std::vector<Candidate> made;
    for (size_t i = 0; i < drawn.size(); i++) {
        if (is_refused[i]) refused_++;
        else if (!is_possible(drawn[i].features)) impossible_++;
        else made.push_back(std::move(drawn[i]));
    }
    return made;
}

std::vector<Candidate> Search::samples_of(size_t count) {
    std::vector<Candidate> drawn;
    for (size_t i = 0; i < count; i++)
        if (auto c = draw(sampling(random_), "sample")) drawn.push_back(std::move(*c));
    return make(std::move(drawn));
}

void Search::seed(const KnobsByStage &stages) {
    if (stages.empty()) return;  // nothing to breed from: the space has better than its image of plain loops
    std::vector<Candidate> drawn;
    if (auto inside = draw(decisions_from_schedule(stages, most_likely), "seed")) drawn.push_back(std::move(*inside));
    for (Candidate &c : make(std::move(drawn))) seeds_.push_back(std::move(c));
}

// Another answer to one to three decisions; what they decide anew is sampled. Some answers go to all decisions about such a
// knob, since what is right for one stage or dim often is for the others, and shows no gain before all of them have it.
Trace Search::mutated(const Candidate &parent) {
    Trace trace = parent.trace;
    std::vector<const Decision *> open;
    for (const Decision &d : parent.asked)
        if (d.answers.size() > 1) open.push_back(&d);
    if (open.empty()) return trace;
    int changes = 1;
    while (changes < 3 && random_.unit() < 0.4) changes++;
    for (int i = 0; i < changes; i++) {
        const Decision &d = *open[static_cast<size_t>(random_.below(static_cast<int64_t>(open.size())))];
        const size_t at = position_of(d, trace.at(d.name()));
        size_t to = at;
        if (d.ordered && random_.unit() < 0.6) {
            const int64_t step = random_.unit() < 0.5 ? -1 : 1;
            to = static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(at) + step, 0, static_cast<int64_t>(d.answers.size()) - 1));
        }
        for (int tries = 0; to == at && tries < 8; tries++)
            to = random_.unit() < 0.5 ? sampling(random_)(d) : static_cast<size_t>(random_.below(static_cast<int64_t>(d.answers.size())));
        trace[d.name()] = d.answers[to].value;
        if (random_.unit() >= alike) continue;
        for (const Decision *other : open)
            if (are_alike(*other, d)) answer_alike(trace, *other, d.answers[to].value);
    }
    return trace;
}

// Each stage as in one of the two.
Trace Search::crossed(const Candidate &a, const Candidate &b) {
    std::map<std::string, bool> from_b;
    Trace trace = a.trace;
    for (const Candidate *c : {&a, &b})
        for (const Decision &d : c->asked) {
            auto [side, fresh] = from_b.emplace(d.stage, false);
            if (fresh) side->second = random_.unit() < 0.5;
        }
    for (const Decision &d : b.asked)
        if (from_b.at(d.stage)) trace[d.name()] = b.trace.at(d.name());
    return trace;
}

// The last bits of a logarithm are the C library's, and must not decide.
static double rounded(double score) { return std::round(score * 1024) / 1024; }

void Search::score(std::vector<Candidate> &all) {
    const auto start = std::chrono::steady_clock::now();
    for (Candidate &c : all) c.scores.assign(workloads_.size(), 0), c.score = 0;
    for (size_t w = 0; w < workloads_.size(); w++) {
        std::vector<Featured> features;
        for (const Candidate &c : all) features.push_back(w == 0 ? c.features : c.further[w - 1]);
        const std::vector<double> scores = model_.predict(features);
        for (size_t i = 0; i < all.size(); i++) {
            all[i].scores[w] = rounded(scores[i]);
            all[i].score += all[i].scores[w] / static_cast<double>(workloads_.size());
        }
    }
    keep_best(all);
    scored_ += all.size();
    scoring_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Search::keep_best(const std::vector<Candidate> &all) {
    for (size_t w = 0; options_.keep > 0 && w < best_.size(); w++) {
        std::vector<Candidate> &best = best_[w];
        for (const Candidate &c : all) {
            if (best.size() >= options_.keep && c.scores[w] <= best.back().scores[w]) continue;
            if (std::any_of(best.begin(), best.end(), [&](const Candidate &b) { return b.identity == c.identity; })) continue;
            const auto place = std::upper_bound(best.begin(), best.end(), c,
                                                [w](const Candidate &a, const Candidate &b) { return a.scores[w] > b.scores[w]; });
            Candidate &kept = *best.insert(place, c);
            kept.asked.clear(), kept.program = {};
            if (best.size() > options_.keep) best.pop_back();
        }
    }
}

bool Search::is_safe(const Candidate &candidate) {
    prove({&candidate});
    return safe_.at(candidate.identity);
}

void Search::prove(const std::vector<const Candidate *> &candidates) {
    std::vector<std::pair<const Candidate *, bool *>> open;
    for (const Candidate *c : candidates)
        if (const auto [known, is_open] = safe_.try_emplace(c->identity, false); is_open) open.push_back({c, &known->second});
    counted(open.size(), spent_, [&](size_t i) {
        const Candidate &c = *open[i].first;
        *open[i].second = is_proved(c.program.body.empty() ? program_of(c) : c.program, max_proof_steps);
    });
}

// The best of a pool, best first.
std::vector<size_t> Search::elite_of(const std::vector<Candidate> &pool, bool of_safe) {
    const std::vector<size_t> order = ranking(pool);
    std::vector<size_t> best;
    // All that there is still place for are asked about together.
    for (size_t next = 0; next < order.size() && best.size() < elite;) {
        const size_t end = std::min(order.size(), next + elite - best.size());
        std::vector<const Candidate *> asked;
        for (size_t i = next; of_safe && i < end; i++) asked.push_back(&pool[order[i]]);
        prove(asked);
        for (; next < end; next++)
            if (!of_safe || safe_.at(pool[order[next]].identity)) best.push_back(order[next]);
    }
    return best;
}

// Children of the best, until there are as many as `population`: of measured ones and, in a pool that is ranked anew after each brood, of
// those that the model thinks most of.
void Search::breed(std::vector<Candidate> &pool, size_t population, std::set<uint64_t> &seen, bool of_safe) {
    const Choose sample = sampling(random_);
    const double of_measured = parents_.size() < few_parents ? 0.25 : 0.6;
    for (size_t made = 0; made < population;) {
        const std::vector<size_t> order = elite_of(pool, of_safe);
        for (Candidate &c : pool) c.program = {};  // what could become a parent is proved by now
        auto parent = [&]() -> const Candidate * {
            if (!parents_.empty() && (order.empty() || random_.unit() < of_measured))
                return &parents_[tournament(random_, parents_.size())].candidate;
            return order.empty() ? nullptr : &pool[order[tournament(random_, order.size())]];
        };
        std::vector<Candidate> drawn, children;
        for (int i = 0; i < options_.brood && made < population; i++, made++) {
            const Candidate *a = parent(), *b = parent();
            if (!a || a->trace.empty()) continue;
            const bool crosses = random_.unit() < 0.2 && b != a && !b->trace.empty();
            auto c = draw(replaying(crosses ? crossed(*a, *b) : mutated(*a), sample), crosses ? "crossover" : "mutation");
            if (c) drawn.push_back(std::move(*c));
        }
        for (Candidate &c : make(std::move(drawn)))
            if (seen.insert(c.identity).second) children.push_back(std::move(c));
        score(children);
        for (Candidate &c : children) pool.push_back(std::move(c));
    }
}

std::vector<Candidate> Search::propose(size_t count) {
    std::vector<Candidate> pool;
    std::set<uint64_t> seen = proposed_;
    auto keep = [&](Candidate &&c) {
        if (seen.insert(c.identity).second) pool.push_back(std::move(c));
    };
    for (Candidate &c : seeds_) keep(std::move(c));
    const size_t seeded = pool.size();
    for (Candidate &c : unproposed_) keep(std::move(c));
    const size_t known = pool.size();
    seeds_.clear(), unproposed_.clear();
    const int population = asked_ ? options_.population : first_batch * options_.population;
    const int samples = population / fresh_part;
    asked_ = true;
    for (Candidate &c : samples_of(static_cast<size_t>(samples))) keep(std::move(c));
    const size_t sampled = pool.size();
    score(pool);
    breed(pool, static_cast<size_t>(population - samples), seen);

    std::vector<Candidate> batch;
    std::vector<bool> taken(pool.size(), false);
    auto take = [&](size_t i) {
        taken[i] = true;
        proposed_.insert(pool[i].identity);
        complete(pool[i]);
        if (!is_proved(pool[i].program)) {  // costs no trial
            refused_++;
            return;
        }
        batch.push_back(std::move(pool[i]));
        batch.back().resolved = resolved_hash(batch.back().program);
    };
    const std::vector<size_t> order = ranking(pool);
    // Like schedules speak for a seed, and the model may think little of it, but not nothing.
    for (size_t i : order)
        if (i < seeded && 4 * batch.size() < count && pool[i].score > pool[order[0]].score - min_seed) take(i);
    to_explore_ += options_.exploration * static_cast<double>(count);
    const size_t explored = std::min(count, static_cast<size_t>(to_explore_ + 1e-9));
    to_explore_ -= static_cast<double>(explored);
    // Likes of what is in the batch already teach little: first those apart from each other, then any.
    for (int apart : {3, 1}) {
        for (size_t i : order) {
            if (batch.size() + explored >= count) break;
            auto like = [&](const Candidate &c) { return differences(c.trace, pool[i].trace) < apart; };
            if (!taken[i] && std::none_of(batch.begin(), batch.end(), like)) take(i);
        }
    }
    for (size_t i = known; i < sampled && batch.size() < count; i++)
        if (!taken[i]) take(i);
    for (size_t i : order)
        if (batch.size() < count && !taken[i]) take(i);
    for (size_t i : order)
        if (!taken[i] && unproposed_.size() < max_unproposed) unproposed_.push_back(std::move(pool[i]));
    return batch;
}

void Search::explore(size_t count) {
    std::vector<Candidate> fresh;
    auto keep = [&](Candidate &&c) {
        if (proposed_.insert(c.identity).second) fresh.push_back(std::move(c));
    };
    for (Candidate &c : seeds_) keep(std::move(c));
    seeds_.clear();
    const size_t samples = count / fresh_part;
    for (Candidate &c : samples_of(samples)) keep(std::move(c));
    score(fresh);
    for (Candidate &c : fresh) explored_.push_back(std::move(c));
    breed(explored_, count - samples, proposed_, true);
    std::vector<Candidate> best;
    for (size_t i : ranking(explored_))
        if (best.size() < max_explored) best.push_back(std::move(explored_[i]));
    explored_ = std::move(best);
}

void Search::learn(const std::vector<Candidate> &candidates, const std::vector<double> &goodness, const std::vector<Example> &examples) {
    for (size_t i = 0; i < candidates.size(); i++) {
        proposed_.insert(candidates[i].identity);
        if (goodness[i] <= 0) continue;
        if (!candidates[i].trace.empty()) {
            parents_.push_back({candidates[i], goodness[i]});
            parents_.back().candidate.program = {};
            continue;
        }
        // What comes from outside of the space has children by its image there, if the model cannot tell them apart.
        const auto image = std::find_if(seeds_.begin(), seeds_.end(),
                                        [&](const Candidate &c) { return c.features.values == candidates[i].features.values; });
        if (image == seeds_.end()) continue;
        proposed_.insert(image->identity);
        parents_.push_back({std::move(*image), goodness[i]});
        seeds_.erase(image);
    }
    std::stable_sort(parents_.begin(), parents_.end(), [](const Parent &a, const Parent &b) { return a.goodness > b.goodness; });
    if (parents_.size() > max_parents) parents_.resize(max_parents);
    model_.update(examples);
}

}  // namespace tessera

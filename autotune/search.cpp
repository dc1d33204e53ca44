#include "autotune/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "algorithms/error.h"
#include "compiler/lower.h"
#include "compiler/split.h"
#include "compiler/tile_identity.h"
#include "compiler/verify_tiles.h"
#include "schedules/check.h"

namespace tessera {

namespace {

constexpr size_t most_parents = 24;
constexpr int first_batch = 3;  // times the population

double share_of(RandomNumbers &random) { return static_cast<double>(random.next() >> 11) / 9007199254740992.0; }

int differences(const Trace &a, const Trace &b) {
    int count = 0;
    for (const auto &[name, value] : a) {
        auto other = b.find(name);
        count += other == b.end() || other->second != value;
    }
    for (const auto &[name, value] : b) count += !a.count(name);
    return count;
}

// Towards the better of a sorted list.
size_t tournament(RandomNumbers &random, size_t size) {
    size_t best = static_cast<size_t>(random.below(static_cast<int64_t>(size)));
    for (int round = 0; round < 2; round++) best = std::min(best, static_cast<size_t>(random.below(static_cast<int64_t>(size))));
    return best;
}

}  // namespace

Search::Search(const SearchSpace &space, const SearchOptions &options, CostModel &model) : space_(space), options_(options), model_(model), random_(options.seed) {
    work_ = work_of(space.algorithm, lower(space.algorithm, {}, space.target), all_extents(space.algorithm, space.extents));
}

bool Search::complete(Candidate &c) const {
    try {
        ResolvedSchedule schedule;
        schedule.name = "candidate";
        schedule.stages = c.stages;
        check(schedule, space_.algorithm);
        check_stages(schedule, -1, apply_splits(inline_calls(space_.algorithm), c.stages));
        c.program = lower(space_.algorithm, c.stages, space_.target);
        c.identity = identity_of(c.program);
        const DimExtents extents = all_extents(c.program, all_extents(space_.algorithm, space_.extents));
        c.features = features_of(profile_of(c.program, extents, space_.target, space_.threads), work_, space_.target, space_.threads);
        return true;
    } catch (const UserError &) {
        return false;
    }
}

std::optional<Candidate> Search::candidate_of(const std::map<std::string, Knobs> &stages, const std::string &origin) const {
    Candidate c;
    c.origin = origin, c.stages = stages;
    if (!complete(c)) return std::nullopt;
    c.resolved = resolved_hash(c.program);
    return c;
}

std::optional<Candidate> Search::make(const Choose &choose, const std::string &origin) {
    if (stopped_ && stopped_()) return std::nullopt;
    made_++;
    Candidate c;
    c.origin = origin;
    try {
        c.stages = realize(space_, recording(choose, c.trace, &c.asked));
    } catch (const UserError &) {  // a restriction
        refused_++;
        return std::nullopt;
    }
    if (complete(c)) return c;
    refused_++;
    return std::nullopt;
}

void Search::plant(const std::map<std::string, Knobs> &stages) {
    if (stages.empty()) return;  // nothing to breed from: the space has better than its image of plain loops
    if (auto inside = make(as_in(stages, most_likely), "seed")) planted_.push_back(std::move(*inside));
}

// Another answer to one to three decisions; what they decide anew is sampled.
Trace Search::mutated(const Candidate &parent) {
    Trace trace = parent.trace;
    std::vector<const Decision *> open;
    for (const Decision &d : parent.asked)
        if (d.answers.size() > 1) open.push_back(&d);
    if (open.empty()) return trace;
    int changes = 1;
    while (changes < 3 && share_of(random_) < 0.4) changes++;
    for (int i = 0; i < changes; i++) {
        const Decision &d = *open[static_cast<size_t>(random_.below(static_cast<int64_t>(open.size())))];
        const std::string &old = trace.at(d.name());
        size_t at = 0;
        while (at + 1 < d.answers.size() && d.answers[at].value != old) at++;
        size_t to = at;
        if (d.ordered && share_of(random_) < 0.6) {
            const int64_t step = share_of(random_) < 0.5 ? -1 : 1;
            to = static_cast<size_t>(std::clamp<int64_t>(static_cast<int64_t>(at) + step, 0, static_cast<int64_t>(d.answers.size()) - 1));
        }
        for (int tries = 0; to == at && tries < 8; tries++) to = share_of(random_) < 0.5 ? sampling(random_)(d) : static_cast<size_t>(random_.below(static_cast<int64_t>(d.answers.size())));
        trace[d.name()] = d.answers[to].value;
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
            if (fresh) side->second = share_of(random_) < 0.5;
        }
    for (const Decision &d : b.asked)
        if (from_b.at(d.stage)) trace[d.name()] = b.trace.at(d.name());
    return trace;
}

void Search::score(std::vector<Candidate> &all) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Featured> features;
    for (const Candidate &c : all) features.push_back(c.features);
    const std::vector<double> scores = model_.predict(features);
    for (size_t i = 0; i < all.size(); i++) all[i].score = scores[i];
    scored_ += all.size();
    scoring_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<Candidate> Search::propose(size_t count) {
    std::vector<Candidate> pool;
    std::set<uint64_t> seen = proposed_;
    auto keep = [&](std::optional<Candidate> c) {
        if (c && seen.insert(c->identity).second) pool.push_back(std::move(*c));
    };
    for (Candidate &c : planted_) keep(std::move(c));
    planted_.clear();
    const size_t planted = pool.size();
    const Choose sample = sampling(random_);
    // Before anything is measured the model alone decides, and is asked about more.
    const int population = parents_.empty() ? first_batch * options_.population : options_.population;
    const int samples = parents_.empty() ? population / 2 : population / 6;
    for (int i = 0; i < samples; i++) keep(make(sample, "sample"));
    const size_t sampled = pool.size();
    score(pool);
    auto by_score = [](const Candidate &a, const Candidate &b) { return a.score > b.score; };
    std::vector<size_t> order;
    for (int generation = 0; generation < options_.generations; generation++) {
        order.resize(pool.size());
        for (size_t i = 0; i < order.size(); i++) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return by_score(pool[a], pool[b]); });
        auto parent = [&]() -> const Candidate * {
            if (!parents_.empty() && (order.empty() || share_of(random_) < 0.6)) return &parents_[tournament(random_, parents_.size())].candidate;
            return order.empty() ? nullptr : &pool[order[tournament(random_, order.size())]];
        };
        std::vector<Candidate> children;
        for (int i = 0; i < std::max(1, (population - samples) / options_.generations); i++) {
            const Candidate *a = parent(), *b = parent();
            if (!a || a->trace.empty()) continue;
            const bool crosses = share_of(random_) < 0.2 && b && b != a && !b->trace.empty();
            const Trace trace = crosses ? crossed(*a, *b) : mutated(*a);
            if (auto c = make(replaying(trace, sample), crosses ? "crossover" : "mutation"); c && seen.insert(c->identity).second) children.push_back(std::move(*c));
        }
        score(children);
        for (Candidate &c : children) pool.push_back(std::move(c));
    }

    std::vector<Candidate> batch;
    std::vector<bool> taken(pool.size(), false);
    auto take = [&](size_t i) {
        taken[i] = true;
        proposed_.insert(pool[i].identity);
        if (!is_proved(pool[i].program)) {  // costs no trial
            refused_++;
            return;
        }
        batch.push_back(std::move(pool[i]));
        batch.back().resolved = resolved_hash(batch.back().program);
    };
    for (size_t i = 0; i < planted && batch.size() < count; i++) take(i);
    to_explore_ += options_.exploration * static_cast<double>(count);
    const size_t explored = std::min(count, static_cast<size_t>(to_explore_ + 1e-9));
    to_explore_ -= static_cast<double>(explored);
    order.resize(pool.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return by_score(pool[a], pool[b]); });
    // Likes of what is in the batch already teach little: first those apart from each other, then any.
    for (int apart : {3, 1}) {
        for (size_t i : order) {
            if (batch.size() + explored >= count) break;
            auto like = [&](const Candidate &c) { return differences(c.trace, pool[i].trace) < apart; };
            if (!taken[i] && std::none_of(batch.begin(), batch.end(), like)) take(i);
        }
    }
    for (size_t i = planted; i < sampled && batch.size() < count; i++)
        if (!taken[i]) take(i);
    for (size_t i : order)
        if (batch.size() < count && !taken[i]) take(i);
    return batch;
}

void Search::learn(const std::vector<Candidate> &candidates, const std::vector<double> &goodness, const std::vector<Example> &examples) {
    for (size_t i = 0; i < candidates.size(); i++) {
        proposed_.insert(candidates[i].identity);
        if (goodness[i] > 0 && !candidates[i].trace.empty()) parents_.push_back({candidates[i], goodness[i]});
    }
    std::stable_sort(parents_.begin(), parents_.end(), [](const Parent &a, const Parent &b) { return a.goodness > b.goodness; });
    if (parents_.size() > most_parents) parents_.resize(most_parents);
    model_.update(examples);
}

}  // namespace tessera

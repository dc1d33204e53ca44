#include "autotune/search/derive.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "algorithms/index/ascending.h"
#include "algorithms/transform/given_extents.h"
#include "algorithms/transform/inline_calls.h"
#include "autotune/space/stage_view.h"
#include "bench/measure/inputs.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int threads_of_many = 8;
constexpr double max_points = 1 << 24;  // of a stage's dims and reduced dims together, in a workload
constexpr double clearly_better = 0.2;  // log2 of a speed: what pays for a variant's code
constexpr size_t max_variants = 3;
constexpr size_t kept = 6;  // of the best at each workload
// How long the search goes on, in candidates: at least `few`; then as long as the last `patience` of them brought `gain`; at most `many`.
constexpr size_t few = 96, patience = 64, many = 192, step = 48;
constexpr size_t of_special = 24;  // of a workload with conditions
constexpr size_t least = 4;
constexpr double gain = 0.03;
// And at most as long as index arithmetic takes so much work: of the whole, and of a workload with conditions. A core of a Sapphire Rapids
// does some 0.9 million in a second.
constexpr double most_work = 3e6, most_work_of_special = 3e5;

std::vector<std::string> free_dims(const Algorithm &algorithm) {
    std::vector<std::string> names;
    for (const Dim &d : algorithm.dims)
        if (d.kind == DimKind::symbolic && d.equals.empty()) names.push_back(d.name);
    return names;
}

}  // namespace

double points_of(const Algorithm &algorithm, const Extents &extents) {
    constexpr double typical = 64;  // of a dim that data decides
    const Extents all = all_extents(algorithm, extents);
    double most = 0;
    const Algorithm inlined = inline_calls(algorithm);
    for (const Stage &stage : inlined.stages()) {
        double points = 1;
        auto visit = [&](const std::vector<std::string> &dims) {
            for (const std::string &d : dims) {
                const auto e = all.find(d);
                points *= e == all.end() ? typical : static_cast<double>(std::max<int64_t>(1, e->second));
            }
        };
        visit(stage.dims);
        if (const auto *reduce = std::get_if<Reduce>(&stage.body)) visit(reduce->dims);
        most = std::max(most, points);
    }
    return most;
}

// Reduced dims by which an index goes on from another dim's: how far a window reaches, which is a few elements.
static std::set<std::string> window_dims(const Algorithm &algorithm) {
    std::set<std::string> windows;
    const Algorithm whole = inline_calls(algorithm);
    for (const Stage &stage : whole.stages()) {
        const StageView view = view_of(stage, whole);
        for (const Operand &operand : view.operands)
            for (const Expr &index : operand.index) {
                const std::set<std::string> used = variables_in(index);
                const auto is_used = [&](const std::string &d) { return used.count(d) > 0; };
                if (std::any_of(view.pure.begin(), view.pure.end(), is_used))
                    std::copy_if(view.reduced.begin(), view.reduced.end(), std::inserter(windows, windows.end()), is_used);
            }
    }
    return windows;
}

namespace {

// The extents of an algorithm's symbolic dims.
class Guess {
public:
    Guess(const Algorithm &algorithm, const Extents &known)
        : algorithm_(algorithm), known_(known), dims_(free_dims(algorithm)), windows_(window_dims(algorithm)) {
        std::erase_if(dims_, [&](const std::string &d) { return known.count(d) > 0; });
        for (const Ascending &list : ascending_results(algorithm))
            for (const Stage &s : algorithm.stages())
                if (results_of(s)[0].name == list.tensor && list.most.kind() == ExprKind::extent && is_free(list.most->name))
                    segments_[s.dims[0]] = list.most->name;
    }
    // Those that neither are known nor are of windows.
    std::vector<std::string> open_dims() const {
        std::vector<std::string> dims = dims_;
        std::erase_if(dims, [&](const std::string &d) { return windows_.count(d) > 0; });
        return dims;
    }
    Extents at(int64_t wished) const {
        constexpr int64_t of_window = 3;
        Extents extents = known_;
        for (const std::string &d : dims_)
            extents[d] = allowed_extent(algorithm_, *algorithm_.find_dim(d), windows_.count(d) ? of_window : wished);
        for (const auto &[of_list, rows] : segments_)
            if (const auto list = extents.find(of_list); list != extents.end() && !known_.count(of_list))
                list->second = allowed_extent(algorithm_, *algorithm_.find_dim(of_list), extents.at(rows) / rows_of_segment + 1);
        return extents;
    }
    // The largest of these at which the work is bounded.
    int64_t bounded(std::initializer_list<int64_t> wishes) const {
        for (int64_t wished : wishes)
            if (points_of(algorithm_, at(wished)) <= max_points) return wished;
        return *(wishes.end() - 1);
    }

private:
    const Algorithm &algorithm_;
    const Extents &known_;
    std::vector<std::string> dims_;
    std::set<std::string> windows_;
    std::map<std::string, std::string> segments_;  // the dim of their offsets -> the flat dim of their rows
    static constexpr int64_t rows_of_segment = 32;

    bool is_free(const std::string &dim) const {
        const Dim *d = algorithm_.find_dim(dim);
        return d && d->kind == DimKind::symbolic && d->equals.empty();
    }
};

}  // namespace

std::vector<ExpectedWorkload> expected_workloads(const Algorithm &algorithm, const Extents &known) {
    const Guess guess(algorithm, known);
    const std::vector<std::string> dims = guess.open_dims();
    const int64_t middle = guess.bounded({256, 128, 64, 32, 16, 8});
    const Extents usual = guess.at(middle);
    std::vector<ExpectedWorkload> all;
    auto is_new = [&](const Extents &extents, int threads) {
        return std::none_of(all.begin(), all.end(),
                            [&](const ExpectedWorkload &e) { return e.workload.extents == extents && e.workload.threads == threads; });
    };
    auto add = [&](const Extents &extents, int threads, const std::vector<Condition> &when) {
        ExpectedWorkload &one = all.emplace_back();
        one.workload.extents = extents, one.workload.threads = threads, one.when = when;
    };
    auto add_general = [&](const Extents &extents, int threads) {
        if (is_new(extents, threads)) add(extents, threads, {});
    };
    auto add_special = [&](const Extents &extents, const std::vector<std::string> &bounded_dims, int64_t bound) {
        std::vector<Condition> when;
        for (const std::string &d : bounded_dims) {
            const int64_t most = std::max(bound, extents.at(d));
            const bool holds_always = allowed_extent(algorithm, *algorithm.find_dim(d), most + 1) <= most;
            if (!holds_always) when.push_back({d, "", 0, "<=", most});
        }
        if (!when.empty() && is_new(extents, 1) && all.size() < max_workloads) add(extents, 1, when);
    };
    add_general(usual, 1);
    // Extents that no tile divides: what a tile's rest costs counts.
    add_general(guess.at(middle - middle / 4 + 5), threads_of_many);
    add_general(guess.at(guess.bounded({4096, 2048, 1024, 512, middle})), 1);
    add_general(guess.at(45), 1);
    add_special(guess.at(16), dims, 32);
    for (const auto &[small, bound] : {std::pair<int64_t, int64_t>{1, 2}, {5, 10}})
        for (const std::string &d : dims) {
            Extents extents = usual;
            extents[d] = allowed_extent(algorithm, *algorithm.find_dim(d), small);
            if (extents.at(d) <= bound) add_special(extents, {d}, bound);
        }
    return all;
}

namespace {

// All that a search kept, each once.
class Choice {
public:
    Choice(Search &search, size_t workloads) : search_(search) {
        for (size_t w = 0; w < workloads; w++)
            for (const Candidate &c : search.best_at(w))
                if (std::none_of(all_.begin(), all_.end(), [&](const Candidate &other) { return other.identity == c.identity; }))
                    all_.push_back(c);
    }

    // The safe one with the highest `score`, of equal ones the first by its answers; nothing where none is.
    template <typename Score>
    const Candidate *best(const Score &score) {
        std::vector<const Candidate *> order;
        for (const Candidate &c : all_) order.push_back(&c);
        std::stable_sort(order.begin(), order.end(), [&](const Candidate *a, const Candidate *b) {
            const double of_a = score(*a), of_b = score(*b);
            return of_a != of_b ? of_a > of_b : a->trace < b->trace;
        });
        const auto found = std::find_if(order.begin(), order.end(), [&](const Candidate *c) { return search_.is_safe(*c); });
        return found == order.end() ? nullptr : *found;
    }

private:
    Search &search_;
    std::vector<Candidate> all_;
};

}  // namespace

namespace {

// How many candidates an algorithm has time for, and how many were made.
class Effort {
public:
    Effort(double share, const DeriveProgress &progress) : progress_(progress), share_(share) {}
    // As many as an algorithm that matters has `candidates`.
    size_t share(size_t candidates) const { return std::max(least, static_cast<size_t>(static_cast<double>(candidates) * share_)); }
    // The search makes no candidate once it took the share of so much work.
    void limit(Search &search, double work) const {
        search.stop_when([&search, most = work * share_] { return static_cast<double>(search.work()) >= most; });
    }
    void explore(Search &search, size_t candidates) {
        const size_t made = search.made();
        search.explore(candidates);
        judged_ += search.made() - made;
        if (progress_ && search.made() > made) progress_(judged_);
    }
    size_t judged() const { return judged_; }
    void add_work(int64_t work) { work_ += work; }
    int64_t work() const { return work_; }

private:
    const DeriveProgress &progress_;
    double share_;
    size_t judged_ = 0;
    int64_t work_ = 0;
};

}  // namespace

// Makes candidates until more of them bring little.
static void explore(Search &search, Effort &effort) {
    const size_t most = effort.share(many), enough = effort.share(few), wait = effort.share(patience), next = effort.share(step);
    size_t made = 0, gained_at = 0;
    for (double reached = -INFINITY; made < most && (made < enough || made < gained_at + wait); made += next) {
        const size_t before = effort.judged();
        effort.explore(search, next);
        if (effort.judged() == before) return;
        if (const double best = search.best_explored(); best > reached + gain) reached = best, gained_at = made;
    }
}

namespace {

struct Special {
    size_t workload;
    KnobsByStage stages;
    double gain;  // log2 of the speed over that of the schedule as a whole
};

}  // namespace

// The best at one workload, in the space that its extents make, where that is clearly better than `whole`.
static std::optional<Special> special_for(const SearchSpace &space, size_t workload, const KnobsByStage &whole, CostModel &model,
                                          Effort &effort) {
    SearchOptions options;
    options.keep = kept, options.explores = true;
    Search search(space, options, model);
    search.seed(realize(space, most_likely));
    search.seed(whole);
    effort.limit(search, most_work_of_special);
    effort.explore(search, effort.share(of_special));
    Choice choice(search, 1);
    const Candidate *best = choice.best([](const Candidate &c) { return c.score; });
    effort.add_work(search.work());
    if (!best) return std::nullopt;
    const double more = best->score - model.predict({search.made_of(whole, "whole").features}).front();
    return more > clearly_better ? std::optional(Special{workload, best->stages, more}) : std::nullopt;
}

Derivation derive(const Algorithm &algorithm, const Target &target, const std::vector<ExpectedWorkload> &workloads, CostModel &model,
                  const DeriveProgress &progress, double effort_share) {
    require(!workloads.empty() && workloads[0].when.empty(), "the first workload is of the schedule as a whole");
    auto space_at = [&](const Workload &w) { return SearchSpace{algorithm, target, w.extents, w.threads, {}, {}}; };
    const SearchSpace space = space_at(workloads[0].workload);
    Derivation derived = {first_stages(space), {}, 1};
    if (target.is_gpu()) return derived;

    SearchOptions options;
    options.keep = kept, options.explores = true;
    size_t general = 1;
    for (size_t w = 1; w < workloads.size(); w++)
        if (workloads[w].when.empty()) options.further.push_back(workloads[w].workload), general++;
    Search search(space, options, model);
    search.seed(derived.stages);
    Effort effort(effort_share, progress);
    effort.limit(search, most_work);
    explore(search, effort);
    derived.candidates = effort.judged();
    Choice choice(search, general);
    const Candidate *whole = choice.best([](const Candidate &c) { return c.score; });
    effort.add_work(search.work());
    derived.work = effort.work();
    if (!whole) return derived;
    derived.stages = whole->stages;

    std::vector<Special> variants;
    for (size_t w = 0; w < workloads.size(); w++)
        if (!workloads[w].when.empty())
            if (auto special = special_for(space_at(workloads[w].workload), w, derived.stages, model, effort)) variants.push_back(*special);
    derived.candidates = effort.judged();
    derived.work = effort.work();
    std::stable_sort(variants.begin(), variants.end(), [](const Special &a, const Special &b) { return a.gain > b.gain; });
    if (variants.size() > max_variants) variants.resize(max_variants);
    // In the order in which they stand: of all dims before those of one, and of these the smaller extents first.
    std::stable_sort(variants.begin(), variants.end(), [](const Special &a, const Special &b) { return a.workload < b.workload; });
    for (const Special &v : variants) derived.variants.push_back({workloads[v.workload].when, v.stages});
    return derived;
}

}  // namespace tessera

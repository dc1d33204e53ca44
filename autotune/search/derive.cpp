#include "autotune/search/derive.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "bench/measure/inputs.h"
#include "compiler/check/verify_tiles.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int threads_of_many = 8;
constexpr double max_points = 1 << 24;  // of a stage's dims and reduced dims together, in a workload
constexpr double clearly_better = 0.2;  // log2 of a speed: what pays for a variant's code
constexpr size_t max_variants = 3;
constexpr size_t kept = 6;  // of the best at each workload
// How long the search goes on, in candidates: at least `few`; then as long as the last `patience` of them brought `gain`; at most `many`.
constexpr size_t few = 384, patience = 192, many = 768, step = 96;
constexpr double gain = 0.03;

std::vector<std::string> free_dims(const Algorithm &algorithm) {
    std::vector<std::string> names;
    for (const Dim &d : algorithm.dims)
        if (d.kind == DimKind::symbolic && d.equals.empty()) names.push_back(d.name);
    return names;
}

// The legal extent nearest to a wished one.
int64_t legal(const Dim &dim, int64_t wished) {
    const int64_t unit = std::max<int64_t>(1, dim.multiple_of);
    const int64_t least = (std::max<int64_t>(1, dim.min) + unit - 1) / unit * unit, most = dim.max / unit * unit;
    return std::max(least, std::min(most, (wished + unit - 1) / unit * unit));
}

// The most points that a stage of the algorithm visits.
double points_of(const Algorithm &algorithm, const Extents &extents) {
    constexpr double typical = 64;  // of a dim that data decides
    const Extents all = all_extents(algorithm, extents);
    double most = 0;
    for (const Stage &stage : inline_calls(algorithm).stages) {
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

}  // namespace

static Extents extents_at(const Algorithm &algorithm, int64_t wished, const Extents &known) {
    Extents extents = known;
    for (const std::string &d : free_dims(algorithm)) extents.emplace(d, legal(*algorithm.find_dim(d), wished));
    return extents;
}

// The largest of these at which the work is bounded.
static int64_t bounded(const Algorithm &algorithm, std::initializer_list<int64_t> wishes, const Extents &known) {
    for (int64_t wished : wishes)
        if (points_of(algorithm, extents_at(algorithm, wished, known)) <= max_points) return wished;
    return *(wishes.end() - 1);
}

std::vector<ExpectedWorkload> expected_workloads(const Algorithm &algorithm, const Extents &known) {
    const int64_t middle = bounded(algorithm, {256, 128, 64, 32, 16, 8}, known);
    const int64_t large = bounded(algorithm, {4096, 2048, 1024, 512, middle}, known);
    const Extents usual = extents_at(algorithm, middle, known);
    std::vector<ExpectedWorkload> all;
    for (int threads : {1, threads_of_many}) all.push_back({{usual, threads}, {}});
    std::vector<std::string> dims = free_dims(algorithm);
    std::erase_if(dims, [&](const std::string &d) { return known.count(d) > 0; });
    auto add = [&](const Extents &extents, const std::vector<std::string> &bounded_dims, int64_t bound) {
        std::vector<Condition> when;
        for (const std::string &d : bounded_dims) when.push_back({d, "", 0, "<=", std::max(bound, extents.at(d))});
        const bool is_new = std::none_of(all.begin(), all.end(), [&](const auto &e) { return e.workload.extents == extents; });
        if (is_new && all.size() < max_workloads) all.push_back({{extents, 1}, when});
    };
    add(extents_at(algorithm, large, known), {}, 0);
    if (!dims.empty()) add(extents_at(algorithm, 16, known), dims, 32);
    for (const auto &[small, bound] : {std::pair<int64_t, int64_t>{1, 2}, {5, 10}})
        for (const std::string &d : dims) {
            Extents extents = usual;
            extents[d] = legal(*algorithm.find_dim(d), small);
            if (extents.at(d) <= bound) add(extents, {d}, bound);
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

double mean(const std::vector<double> &scores, const std::vector<size_t> &of) {
    double sum = 0;
    for (size_t w : of) sum += scores[w];
    return sum / static_cast<double>(of.size());
}

}  // namespace

// Makes candidates until more of them bring little.
static size_t explore(Search &search, const KnobsByStage &first) {
    search.seed(first);
    size_t made = 0, gained_at = 0;
    for (double reached = -INFINITY; made < many && (made < few || made < gained_at + patience); made += step) {
        search.explore(step);
        if (const double best = search.best_explored(); best > reached + gain) reached = best, gained_at = made;
    }
    return made;
}

Derivation derive(const Algorithm &algorithm, const Target &target, const std::vector<ExpectedWorkload> &workloads, CostModel &model) {
    require(!workloads.empty() && workloads[0].when.empty(), "the first workload is of the schedule as a whole");
    const SearchSpace space = {algorithm, target, workloads[0].workload.extents, workloads[0].workload.threads, {}, {}};
    const KnobsByStage first = first_stages(space);
    Derivation derived = {first, {}, 1};
    if (target.is_gpu()) return derived;

    SearchOptions options;
    options.keep = kept;
    for (size_t w = 1; w < workloads.size(); w++) options.further.push_back(workloads[w].workload);
    Search search(space, options, model);
    derived.candidates = explore(search, first);

    Choice choice(search, workloads.size());
    std::vector<size_t> general, special;
    for (size_t w = 0; w < workloads.size(); w++) (workloads[w].when.empty() ? general : special).push_back(w);
    const Candidate *whole = choice.best([&](const Candidate &c) { return mean(c.scores, general); });
    if (!whole) return derived;
    derived.stages = whole->stages;

    struct Special {
        size_t workload;
        const Candidate *best;
        double gain;
    };
    std::vector<Special> variants;
    for (size_t w : special) {
        const Candidate *best = choice.best([&](const Candidate &c) { return c.scores[w]; });
        if (const double more = best->scores[w] - whole->scores[w]; more > clearly_better) variants.push_back({w, best, more});
    }
    std::stable_sort(variants.begin(), variants.end(), [](const Special &a, const Special &b) { return a.gain > b.gain; });
    if (variants.size() > max_variants) variants.resize(max_variants);
    // In the order in which they stand: of all dims before those of one, and of these the smaller extents first.
    std::stable_sort(variants.begin(), variants.end(), [](const Special &a, const Special &b) { return a.workload < b.workload; });
    for (const Special &v : variants) derived.variants.push_back({workloads[v.workload].when, v.best->stages});
    return derived;
}

}  // namespace tessera

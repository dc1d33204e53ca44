#include "costmodel/model/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/text/error.h"

namespace tessera {

namespace {

class RooflineModel : public CostModel {
public:
    std::vector<double> predict(const std::vector<Featured> &candidates) const override {
        std::vector<double> scores;
        for (const Featured &c : candidates) scores.push_back(draft_score(c));
        return scores;
    }
    void update(const std::vector<Example> &) override {}
    void load(const std::filesystem::path &file) override {
        throw UserError("model.format",
                        "cost model '" + file.string() + "': the roofline has nothing to load. Load it into a model that learns.");
    }
    void save(const std::filesystem::path &file) const override {
        throw UserError("model.format",
                        "cost model '" + file.string() + "': the roofline has nothing to save. Save a model that learnt something.");
    }
};

// Positions in sorted order, those of equal values averaged.
std::vector<double> ranks_of(const std::vector<double> &values) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
    std::vector<double> ranks(values.size());
    for (size_t i = 0; i < order.size();) {
        size_t end = i;
        while (end < order.size() && values[order[end]] == values[order[i]]) end++;
        for (size_t j = i; j < end; j++) ranks[order[j]] = static_cast<double>(i + end - 1) / 2;
        i = end;
    }
    return ranks;
}

}  // namespace

double draft_score(const Featured &candidate) { return -std::log2(candidate.draft / candidate.bound); }

double rank_correlation(const std::vector<double> &x, const std::vector<double> &y) {
    if (x.empty()) return 0;
    const std::vector<double> a = ranks_of(x), b = ranks_of(y);
    const double n = static_cast<double>(a.size());
    const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n, mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
    double both = 0, own_a = 0, own_b = 0;
    for (size_t i = 0; i < a.size(); i++) {
        both += (a[i] - mean_a) * (b[i] - mean_b);
        own_a += (a[i] - mean_a) * (a[i] - mean_a), own_b += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return own_a > 0 && own_b > 0 ? both / std::sqrt(own_a * own_b) : 0;
}

std::unique_ptr<CostModel> roofline_model() { return std::make_unique<RooflineModel>(); }

Ranking ranking_of(const std::vector<double> &scores, const std::vector<Example> &examples) {
    Ranking ranking;
    std::vector<double> predicted, speeds;
    double fastest = 0;
    for (size_t i = 0; i < examples.size(); i++) {
        if (examples[i].seconds <= 0) continue;
        predicted.push_back(scores[i]), speeds.push_back(1 / examples[i].seconds);
        fastest = std::max(fastest, speeds.back());
    }
    ranking.correlation = rank_correlation(predicted, speeds);
    std::vector<size_t> order(examples.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    const size_t counts[] = {1, 8, 16, 64};
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < std::min(counts[k], order.size()); i++)
            if (const Example &e = examples[order[i]]; e.seconds > 0)
                ranking.best_of[k] = std::max(ranking.best_of[k], 1 / e.seconds / fastest);
    return ranking;
}

}  // namespace tessera

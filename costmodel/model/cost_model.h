// A cost model ranks candidates of one task before any of them is measured. Four verbs: load, save, update, predict; a model of
// one's own has the same.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "costmodel/features/features.h"

namespace tessera {

// What one measurement teaches.
struct Example {
    std::string task;  // algorithm, numerics, shape and target; scores are compared within a task only
    Featured features;
    double seconds = 0;  // of one call; 0 for a candidate that failed
};

class CostModel {
public:
    virtual ~CostModel() = default;
    // A score for each candidate of one task: the higher, the faster. Scores differ by about the log2 of the ratio of times.
    virtual std::vector<double> predict(const std::vector<Featured> &candidates) const = 0;
    // Learns from these examples, beside all that it learnt before.
    virtual void update(const std::vector<Example> &examples) = 0;
    // UserError model.file, model.format, model.features.
    virtual void load(const std::filesystem::path &file) = 0;
    virtual void save(const std::filesystem::path &file) const = 0;
};

// The score of the draft alone: log2 of its speed, 0 at the bound.
double draft_score(const Featured &candidate);

// The roofline alone: the draft, with nothing learnt.
std::unique_ptr<CostModel> roofline_model();

// Trees on top of the draft (boosted_trees.h).
std::unique_ptr<CostModel> boosted_model();

// Spearman's, between -1 and 1, with mean ranks for equal values; 0 where a list has fewer than two different ones.
double rank_correlation(const std::vector<double> &a, const std::vector<double> &b);

// How well scores order the candidates of one task.
struct Ranking {
    double correlation = 0;  // rank_correlation of scores and speeds, over those that did not fail
    double best_of[4] = {};  // the fastest among the k best scores over the fastest of all, for k = 1, 8, 16, 64
};
Ranking ranking_of(const std::vector<double> &scores, const std::vector<Example> &examples);

}  // namespace tessera

// Gradient-boosted trees (Chen and Guestrin, "XGBoost", KDD 2016) over the feature table: the only file that knows XGBoost. A
// model is its JSON text.
//
// XGBoost reads what a model says without looking whether it is there, so that a crafted one reads outside of its arrays; what XGBoost
// sees of a model from outside is therefore written anew, of what was checked node by node.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "costmodel/features/features.h"

namespace tessera {

struct TreeRow {
    const Featured *features = nullptr;
    double margin = 0;  // what the trees add to
    double label = 0;   // the better, the higher
    size_t group = 0;   // rows are ranked within their group; groups stand together
    double weight = 1;  // of the group
};

struct TreeOptions {
    int rounds = 150, depth = 4;
    double rate = 0.1, min_weight = 10, regularisation = 10;
};

// Trees that order each group's rows by their labels (LambdaMART's pairwise loss). The same rows give the same text.
std::string train_trees(const std::vector<TreeRow> &rows, const TreeOptions &options);

// The trees of a model, ready to be summed.
class Forest {
public:
    // A result of train_trees or checked_forest.
    explicit Forest(const std::string &model);
    // What the trees add for each candidate.
    std::vector<double> sums(const std::vector<Featured> &candidates) const;

private:
    struct Loaded;
    std::shared_ptr<const Loaded> loaded_;
};

// The forest that a text from outside says, as a text that predicts the same and has nothing else in it. UserError model.format: it is no
// forest over as many features as the table has; `subject` names it.
std::string checked_forest(const std::string &model, const std::string &subject);

}  // namespace tessera

#include "costmodel/boosted_trees.h"

#include <xgboost/c_api.h>

#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/error.h"
#include "algorithms/json_parse.h"

namespace tessera {

namespace {

using nlohmann::json;

void check(int status) {
    if (status != 0) throw InternalError(std::string("XGBoost: ") + XGBGetLastError());
}

struct Matrix {
    DMatrixHandle handle = nullptr;
    Matrix(const std::vector<float> &values, size_t rows) {
        check(XGDMatrixCreateFromMat(values.data(), rows, feature_table().size(), std::nanf(""), &handle));
    }
    ~Matrix() { XGDMatrixFree(handle); }
    Matrix(const Matrix &) = delete;
    Matrix &operator=(const Matrix &) = delete;
};

struct Booster {
    BoosterHandle handle = nullptr;
    explicit Booster(const std::vector<DMatrixHandle> &matrices) {
        check(XGBoosterCreate(matrices.data(), matrices.size(), &handle));
        set("nthread", "1");  // for one order of additions, and no threads in a process that forks
        set("verbosity", "0");
    }
    ~Booster() { XGBoosterFree(handle); }
    Booster(const Booster &) = delete;
    Booster &operator=(const Booster &) = delete;
    void set(const char *name, const std::string &value) { check(XGBoosterSetParam(handle, name, value.c_str())); }
};

std::vector<float> values_of(const std::vector<const Featured *> &rows) {
    std::vector<float> all;
    for (const Featured *f : rows) {
        require(f->values.size() == feature_table().size(), "a candidate has a value for each feature");
        all.insert(all.end(), f->values.begin(), f->values.end());
    }
    return all;
}

}  // namespace

std::string train_trees(const std::vector<TreeRow> &rows, const TreeOptions &options) {
    std::vector<const Featured *> features;
    std::vector<float> labels, margins, weights;
    std::vector<unsigned> groups;
    double lowest = 0;
    for (const TreeRow &row : rows) lowest = std::min(lowest, row.label);
    for (size_t i = 0; i < rows.size(); i++) {
        features.push_back(rows[i].features);
        labels.push_back(static_cast<float>(rows[i].label - lowest)), margins.push_back(static_cast<float>(rows[i].margin));
        if (i == 0 || rows[i].group != rows[i - 1].group) groups.push_back(0), weights.push_back(static_cast<float>(rows[i].weight));
        groups.back()++;
    }
    const Matrix matrix(values_of(features), rows.size());
    check(XGDMatrixSetFloatInfo(matrix.handle, "label", labels.data(), labels.size()));
    check(XGDMatrixSetFloatInfo(matrix.handle, "base_margin", margins.data(), margins.size()));
    check(XGDMatrixSetUIntInfo(matrix.handle, "group", groups.data(), groups.size()));
    check(XGDMatrixSetFloatInfo(matrix.handle, "weight", weights.data(), weights.size()));
    Booster booster({matrix.handle});
    booster.set("objective", "rank:pairwise");
    booster.set("max_depth", std::to_string(options.depth));
    booster.set("eta", fmt::format("{}", options.rate));
    booster.set("min_child_weight", fmt::format("{}", options.least_weight));
    booster.set("lambda", fmt::format("{}", options.regularisation));
    booster.set("tree_method", "exact");
    booster.set("base_score", "0");
    booster.set("seed", "1");
    for (int round = 0; round < options.rounds; round++) check(XGBoosterUpdateOneIter(booster.handle, round, matrix.handle));
    bst_ulong size = 0;
    const char *text = nullptr;
    check(XGBoosterSaveModelToBuffer(booster.handle, R"({"format": "json"})", &size, &text));
    return std::string(text, size);
}

struct Forest::Loaded {
    Booster booster{std::vector<DMatrixHandle>()};
};

Forest::Forest(const std::string &model) {
    auto loaded = std::make_shared<Loaded>();
    check(XGBoosterLoadModelFromBuffer(loaded->booster.handle, model.data(), model.size()));
    loaded->booster.set("nthread", "1");
    loaded_ = std::move(loaded);
}

std::vector<double> Forest::sums(const std::vector<Featured> &candidates) const {
    if (candidates.empty()) return {};
    std::vector<const Featured *> rows;
    for (const Featured &c : candidates) rows.push_back(&c);
    const Matrix matrix(values_of(rows), rows.size());
    const std::vector<float> zeros(rows.size(), 0);
    check(XGDMatrixSetFloatInfo(matrix.handle, "base_margin", zeros.data(), zeros.size()));
    const bst_ulong *shape = nullptr;
    bst_ulong dimensions = 0;
    const float *scores = nullptr;
    check(XGBoosterPredictFromDMatrix(loaded_->booster.handle, matrix.handle, R"({"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})", &shape, &dimensions, &scores));
    return std::vector<double>(scores, scores + rows.size());
}

void check_trees(const std::string &model, const std::string &subject) {
    auto refuse = [&](const std::string &expected) {
        throw UserError("model.format", subject + ": expected " + expected + ", as XGBoost's JSON has it. Train it again.");
    };
    const json document = parse_json(model, subject);
    const size_t features = feature_table().size();
    try {
        const json &learner = document.at("learner"), &booster = learner.at("gradient_booster"), &forest = booster.at("model");
        if (booster.at("name") != "gbtree" || learner.at("objective").at("name") != "rank:pairwise") refuse("a forest for ranking");
        if (learner.at("learner_model_param").at("num_feature") != std::to_string(features)) refuse(fmt::format("a forest over {} features", features));
        const json &trees = forest.at("trees"), &info = forest.at("tree_info");
        if (forest.at("gbtree_model_param").at("num_trees") != std::to_string(trees.size()) || info.size() != trees.size()) refuse("as many trees as it says");
        for (const json &group : info)
            if (group != 0) refuse("trees for one score");
        for (size_t t = 0; t < trees.size(); t++) {
            const json &tree = trees[t];
            const size_t nodes = tree.at("left_children").size();
            const auto bad = [&](const std::string &what) { refuse(fmt::format("{} in tree {}", what, t)); };
            if (tree.at("id") != t || nodes == 0 || tree.at("tree_param").at("num_nodes") != std::to_string(nodes) || tree.at("tree_param").at("num_feature") != std::to_string(features) ||
                tree.at("tree_param").at("size_leaf_vector") != "0" || tree.at("tree_param").at("num_deleted") != "0")
                bad("nodes as it says");
            for (const char *list : {"right_children", "parents", "split_indices", "split_conditions", "default_left", "base_weights", "loss_changes", "sum_hessian", "split_type"})
                if (tree.at(list).size() != nodes) bad(std::string("an entry of '") + list + "' for each node");
            for (const char *list : {"categories", "categories_nodes", "categories_segments", "categories_sizes"})
                if (!tree.at(list).empty()) bad("no categories");
            std::vector<int64_t> parent(nodes, -1);
            for (size_t n = 0; n < nodes; n++) {
                const int64_t left = tree.at("left_children")[n].get<int64_t>(), right = tree.at("right_children")[n].get<int64_t>();
                if (tree.at("split_type")[n] != 0) bad("splits of numbers");
                if (left == -1 && right == -1) continue;
                for (int64_t child : {left, right}) {
                    // Children come after their parent, so that no path is a circle.
                    if (child <= static_cast<int64_t>(n) || child >= static_cast<int64_t>(nodes) || parent[static_cast<size_t>(child)] >= 0) bad("children that are nodes of its own");
                    parent[static_cast<size_t>(child)] = static_cast<int64_t>(n);
                }
                const int64_t feature = tree.at("split_indices")[n].get<int64_t>();
                if (feature < 0 || feature >= static_cast<int64_t>(features)) bad("splits by a feature of the table");
                if (!tree.at("split_conditions")[n].is_number()) bad("numbers to compare with");
            }
            for (size_t n = 1; n < nodes; n++)
                if (parent[n] < 0) bad("nodes with a parent");
        }
    } catch (const json::exception &error) {
        refuse(std::string("the fields of a forest (") + error.what() + ")");
    }
}

}  // namespace tessera

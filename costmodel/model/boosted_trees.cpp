#include "costmodel/model/boosted_trees.h"

#include <xgboost/c_api.h>

#include <cmath>
#include <functional>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/files/json_parse.h"
#include "support/text/error.h"

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

}  // namespace

// A member of Forest::Loaded, and so of external linkage.
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

namespace {

std::vector<float> values_of(const std::vector<const Featured *> &rows) {
    std::vector<float> all;
    for (const Featured *f : rows) {
        require(f->values.size() == feature_table().size(), "a candidate has a value for each feature");
        all.insert(all.end(), f->values.begin(), f->values.end());
    }
    return all;
}

// A tree of which only what predicts is kept: who is whose child, what is compared with what, and the leaves' values. `refuse` throws.
json checked_tree(const json &tree, size_t number, const std::function<void(const std::string &)> &refuse) {
    constexpr int64_t no_parent = 2147483647;
    auto bad = [&](const std::string &what) { refuse(fmt::format("{} in tree {}", what, number)); };
    const size_t features = feature_table().size(), nodes = tree.at("left_children").size();
    if (tree.at("id") != number || nodes == 0 || tree.at("tree_param").at("num_nodes") != std::to_string(nodes)) bad("nodes as it says");
    for (const char *list : {"left_children", "right_children", "split_indices", "split_conditions", "default_left", "split_type"})
        if (!tree.at(list).is_array() || tree.at(list).size() != nodes) bad(std::string("an entry of '") + list + "' for each node");
    if (!tree.at("categories").empty()) bad("no categories");
    auto integers = [&](const char *list) {
        for (const json &value : tree.at(list))
            if (!value.is_number_integer()) bad(std::string("integers as '") + list + "'");
        return tree.at(list).get<std::vector<int64_t>>();
    };
    std::vector<int64_t> left = integers("left_children"), right = integers("right_children"), feature = integers("split_indices"),
                         parent(nodes, no_parent);
    std::vector<int> to_left;
    std::vector<double> value;
    for (size_t n = 0; n < nodes; n++) {
        const json &number_there = tree.at("split_conditions")[n], &side = tree.at("default_left")[n];
        if (tree.at("split_type")[n] != 0) bad("splits of numbers");
        if (!number_there.is_number() || !std::isfinite(static_cast<float>(number_there.get<double>()))) bad("numbers to compare with");
        if (!side.is_boolean() && side != 0 && side != 1) bad("a side for what is missing");
        value.push_back(number_there.get<double>()), to_left.push_back(side == true || side == 1 ? 1 : 0);
        if (left[n] == -1 && right[n] == -1) {
            feature[n] = 0;
            continue;
        }
        for (int64_t child : {left[n], right[n]}) {
            // Children come after their parent, so that no path is a circle.
            if (child <= static_cast<int64_t>(n) || child >= static_cast<int64_t>(nodes) || parent[static_cast<size_t>(child)] != no_parent)
                bad("children that are nodes of its own");
            parent[static_cast<size_t>(child)] = static_cast<int64_t>(n);
        }
        if (feature[n] < 0 || feature[n] >= static_cast<int64_t>(features)) bad("splits by a feature of the table");
    }
    for (size_t n = 1; n < nodes; n++)
        if (parent[n] == no_parent) bad("nodes with a parent");
    const std::vector<double> none(nodes, 0);
    json param = {
        {"num_deleted", "0"}, {"num_feature", std::to_string(features)}, {"num_nodes", std::to_string(nodes)}, {"size_leaf_vector", "0"}};
    json checked = {{"id", number},
                    {"tree_param", param},
                    {"left_children", left},
                    {"right_children", right},
                    {"parents", parent},
                    {"split_indices", feature},
                    {"split_conditions", value},
                    {"default_left", to_left},
                    {"split_type", std::vector<int>(nodes, 0)},
                    {"base_weights", none},
                    {"loss_changes", none},
                    {"sum_hessian", none}};
    for (const char *list : {"categories", "categories_nodes", "categories_segments", "categories_sizes"}) checked[list] = json::array();
    return checked;
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
    booster.set("min_child_weight", fmt::format("{}", options.min_weight));
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
    check(XGBoosterPredictFromDMatrix(loaded_->booster.handle, matrix.handle,
                                      R"({"type": 1, "training": false, "iteration_begin": 0, "iteration_end": 0, "strict_shape": false})",
                                      &shape, &dimensions, &scores));
    return std::vector<double>(scores, scores + rows.size());
}

std::string checked_forest(const std::string &model, const std::string &subject) {
    auto refuse = [&](const std::string &expected) {
        throw UserError("model.format", subject + ": expected " + expected + ", as XGBoost's JSON has it. Train it again.");
    };
    const json document = parse_json(model, subject);
    const std::string features = std::to_string(feature_table().size());
    json forest = json::array();
    try {
        const json &learner = document.at("learner"), &booster = learner.at("gradient_booster"), &given = booster.at("model");
        if (booster.at("name") != "gbtree" || learner.at("objective").at("name") != "rank:pairwise") refuse("a forest for ranking");
        if (learner.at("learner_model_param").at("num_feature") != features) refuse("a forest over " + features + " features");
        const json &trees = given.at("trees"), &info = given.at("tree_info");
        if (!trees.is_array() || given.at("gbtree_model_param").at("num_trees") != std::to_string(trees.size()) ||
            info.size() != trees.size())
            refuse("as many trees as it says");
        for (const json &group : info)
            if (group != 0) refuse("trees for one score");
        for (const json &tree : trees) forest.push_back(checked_tree(tree, forest.size(), refuse));
    } catch (const json::exception &error) { refuse(std::string("the fields of a forest (") + error.what() + ")"); }
    return json{
        {"version", {1, 6, 0}},
        {"learner",
         {{"attributes", json::object()},
          {"feature_names", json::array()},
          {"feature_types", json::array()},
          {"learner_model_param", {{"base_score", "0E0"}, {"num_class", "0"}, {"num_feature", features}, {"num_target", "1"}}},
          {"objective", {{"name", "rank:pairwise"}, {"lambda_rank_param", {{"fix_list_weight", "0"}, {"num_pairsample", "1"}}}}},
          {"gradient_booster",
           {{"name", "gbtree"},
            {"model",
             {{"gbtree_model_param", {{"num_parallel_tree", "1"}, {"num_trees", std::to_string(forest.size())}, {"size_leaf_vector", "0"}}},
              {"tree_info", std::vector<int>(forest.size(), 0)},
              {"trees", forest}}}}}}}}
        .dump();
}

}  // namespace tessera

#include "costmodel/model/boosted_trees.h"

#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>

#include "bench/measure/inputs.h"
#include "tests/support/words.h"

namespace tessera::test_boosted_trees {

using namespace tessera::test;

static std::vector<Featured> candidates(size_t count) {
    RandomNumbers random(1);
    std::vector<Featured> all(count);
    for (Featured &f : all)
        for (size_t i = 0; i < feature_table().size(); i++) f.values.push_back(static_cast<float>(random.signed_unit()));
    return all;
}

static std::string trained(const std::vector<Featured> &all) {
    std::vector<TreeRow> rows;
    for (size_t i = 0; i < all.size(); i++) rows.push_back({&all[i], 0, all[i].values[3] + all[i].values[7], i / 50, 1});
    TreeOptions options;
    options.rounds = 20;
    return train_trees(rows, options);
}

TEST_CASE("trees learn an order within groups, and the same rows give the same trees") {
    const auto all = candidates(200);
    const std::string model = trained(all);
    CHECK(trained(all) == model);
    const auto scores = Forest(model).sums(all);
    CHECK(Forest(checked_forest(model, "model")).sums(all) == scores);
    int right = 0, pairs = 0;
    for (size_t i = 0; i < all.size(); i++)
        for (size_t j = 0; j < i; j++)
            pairs++, right += (scores[i] > scores[j]) == (all[i].values[3] + all[i].values[7] > all[j].values[3] + all[j].values[7]);
    CHECK(right > pairs * 85 / 100);
    CHECK(Forest(model).sums({}).empty());
}

TEST_CASE("a crafted forest is refused before anything reads it") {
    const nlohmann::json good = nlohmann::json::parse(trained(candidates(100)));
    auto refused = [&](const std::function<void(nlohmann::json & tree)> &change) {
        nlohmann::json bad = good;
        change(bad["learner"]["gradient_booster"]["model"]["trees"][1]);
        return words([&] { checked_forest(bad.dump(), "model"); });
    };
    auto check = [&](const std::function<void(nlohmann::json & tree)> &change) {
        CHECK_THAT(refused(change), Catch::Contains("error[model.format]: model: expected") && Catch::Contains("tree 1"));
    };
    check([](auto &t) { t["left_children"][0] = 100000; });
    check([](auto &t) { t["left_children"][0] = -5; });
    check([](auto &t) { t["left_children"][1] = 0; });
    check([](auto &t) { t["right_children"][0] = t["left_children"][0]; });
    check([](auto &t) { t["split_indices"][0] = 100000; });
    check([](auto &t) { t["split_indices"][0] = -1; });
    check([](auto &t) { t["split_conditions"].erase(0); });
    check([](auto &t) { t["split_conditions"][0] = "x"; });
    check([](auto &t) { t["split_type"][0] = 1; });
    check([](auto &t) { t["categories"].push_back(1); });
    check([](auto &t) { t["tree_param"]["num_nodes"] = "100000"; });
    check([](auto &t) { t["left_children"][0] = 1.5; });
    check([](auto &t) { t["split_conditions"][0] = 1e300; });
    check([](auto &t) { t["default_left"][0] = "x"; });
    auto document = [&](const std::function<void(nlohmann::json &)> &change) {
        nlohmann::json bad = good;
        change(bad);
        return words([&] { checked_forest(bad.dump(), "model"); });
    };
    CHECK_THAT(document([](auto &d) { d["learner"]["learner_model_param"]["num_feature"] = "7"; }), Catch::Contains("features"));
    CHECK_THAT(document([](auto &d) { d["learner"]["gradient_booster"]["name"] = "dart"; }), Catch::Contains("a forest for ranking"));
    CHECK_THAT(document([](auto &d) { d["learner"]["gradient_booster"]["model"]["tree_info"][0] = 4; }), Catch::Contains("one score"));
    CHECK_THAT(document([](auto &d) { d.erase("learner"); }), Catch::Contains("the fields of a forest"));
    CHECK_THAT(words([&] { checked_forest("{", "model"); }), Catch::Contains("json.syntax"));
}

// What predicts is read from the checked lists; whatever else a text has, XGBoost never sees.
TEST_CASE("a crafted forest that is accepted predicts as its trees say") {
    const auto all = candidates(100);
    const nlohmann::json good = nlohmann::json::parse(trained(all));
    const auto scores = Forest(good.dump()).sums(all);
    auto predicts_the_same = [&](const std::function<void(nlohmann::json & document, nlohmann::json & tree)> &change) {
        nlohmann::json bad = good;
        change(bad, bad["learner"]["gradient_booster"]["model"]["trees"][1]);
        CHECK(Forest(checked_forest(bad.dump(), "model")).sums(all) == scores);
    };
    for (int64_t elsewhere : {-3, 100, 1000000, 4294967}) predicts_the_same([&](auto &, auto &t) { t["parents"][1] = elsewhere; });
    predicts_the_same([](auto &, auto &t) { t["parents"] = nlohmann::json::array(); });
    predicts_the_same([](auto &, auto &t) { t["tree_param"]["num_deleted"] = "7", t["tree_param"]["size_leaf_vector"] = "9"; });
    predicts_the_same([](auto &d, auto &) {
        d["learner"]["learner_model_param"]["num_class"] = "5", d["learner"]["learner_model_param"]["num_target"] = "3";
    });
    predicts_the_same(
        [](auto &d, auto &) { d["learner"]["gradient_booster"]["model"]["gbtree_model_param"]["num_parallel_tree"] = "1000"; });
    predicts_the_same([](auto &d, auto &) {
        d["learner"]["attributes"] = {{"best_iteration", "0"}}, d["learner"]["feature_names"] = {"a"};
    });
}

}  // namespace tessera::test_boosted_trees

#include "costmodel/model/cost_model.h"

#include <catch2/catch.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

#include "bench/measure/inputs.h"
#include "support/files/output_folder.h"
#include "tests/support/shell.h"
#include "tests/support/words.h"

namespace tessera::test_cost_model {

using namespace tessera::test;

// Candidates whose time the draft gets wrong by a factor that one feature tells.
static std::vector<Example> examples(const std::string &task, uint64_t seed, size_t count) {
    RandomNumbers random(seed);
    std::vector<Example> all;
    for (size_t i = 0; i < count; i++) {
        Example e;
        e.task = task;
        for (size_t f = 0; f < feature_table().size(); f++) e.features.values.push_back(static_cast<float>(random.signed_unit()));
        e.features.bound = 1e-3, e.features.draft = 1e-3 * (2 + random.signed_unit());
        e.seconds = e.features.draft * std::exp2(3 * std::abs(e.features.values[5]));
        if (i % 10 == 9) e.seconds = 0;
        all.push_back(e);
    }
    return all;
}

static std::vector<Featured> features(const std::vector<Example> &all) {
    std::vector<Featured> f;
    for (const Example &e : all) f.push_back(e.features);
    return f;
}

TEST_CASE("what is learnt ranks better than the draft, on a task that was not seen") {
    const auto model = boosted_model();
    const std::vector<Example> unseen = examples("unseen", 99, 200);
    const double before = ranking_of(model->predict(features(unseen)), unseen).correlation;
    for (uint64_t task = 0; task < 4; task++) model->update(examples("task" + std::to_string(task), task, 150));
    const Ranking after = ranking_of(model->predict(features(unseen)), unseen);
    CHECK(before < 0.6);
    CHECK(after.correlation > 0.8);
    CHECK(after.best_of[3] > 0.9);
    CHECK(after.best_of[0] <= after.best_of[1]);
}

// How many leaves and splits the largest tree has of a model that learnt these.
static size_t largest_tree(const std::vector<Example> &all) {
    const TemporaryFolder folder;
    const auto model = boosted_model();
    model->update(all);
    model->save(folder.path() / "model.json");
    const auto forest = nlohmann::json::parse(nlohmann::json::parse(read_file(folder.path() / "model.json"))["forest"].get<std::string>());
    size_t most = 0;
    for (const auto &tree : forest["learner"]["gradient_booster"]["model"]["trees"]) most = std::max(most, tree["left_children"].size());
    return most;
}

TEST_CASE("few examples teach something, however many tasks they are of") {
    for (const auto &[first, second] : std::vector<std::pair<size_t, size_t>>{{4, 0}, {16, 0}, {16, 1}, {8, 8}, {60, 60}}) {
        INFO(first << " and " << second);
        std::vector<Example> all = examples("a", 1, first);
        const std::vector<Example> more = examples("b", 2, second);
        all.insert(all.end(), more.begin(), more.end());
        CHECK(largest_tree(all) > 1);
    }
    const auto model = boosted_model();
    model->update(examples("a", 1, 3));
    check_words([&] { model->save("model.json"); }, {"error[model.empty]", "the fewest are 4"});
}

TEST_CASE("a candidate that reaches its bound is the fastest, not an absent one") {
    const TemporaryFolder folder;
    const auto saved = [&](double bound) {
        std::vector<Example> all = examples("a", 1, 9);
        for (size_t i = 0; i < all.size(); i++)
            all[i].seconds = std::exp2(static_cast<double>(i)), all[i].features.draft = bound, all[i].features.bound = bound;
        const auto model = boosted_model();
        model->update(all);
        model->save(folder.path() / "model.json");
        return read_file(folder.path() / "model.json");
    };
    // How far one is behind the fastest is the same whatever the bound.
    CHECK((saved(1) == saved(0.5)));
}

TEST_CASE("a model is saved, loaded, and learns on") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "model.json";
    const auto trained = boosted_model();
    check_words([&] { trained->save(file); }, {"error[model.empty]"});
    trained->update(examples("a", 1, 100));
    trained->update(examples("b", 2, 100));
    trained->save(file);
    const auto loaded = boosted_model();
    loaded->load(file);
    const std::vector<Example> unseen = examples("c", 3, 60);
    const auto scores = trained->predict(features(unseen));
    const auto again = loaded->predict(features(unseen));
    for (size_t i = 0; i < scores.size(); i++) CHECK(again[i] == Approx(scores[i]).margin(1e-5));
    loaded->update(unseen);
    CHECK(ranking_of(loaded->predict(features(unseen)), unseen).correlation > ranking_of(scores, unseen).correlation);
    check_words([&] { loaded->save(file); }, {"error[model.layers]", "Train one on all examples instead"});
    check_words([&] { roofline_model()->save(file); }, {"error[model.format]"});
}

TEST_CASE("model files of strangers are refused with words") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "model.json";
    const auto trained = boosted_model();
    trained->update(examples("a", 1, 60));
    trained->save(file);
    const nlohmann::json good = nlohmann::json::parse(read_file(file));
    auto refused = [&](const nlohmann::json &document) {
        write_file(file, document.dump());
        return words([&] { boosted_model()->load(file); });
    };
    CHECK(refused(good) == "no error");
    auto with = [&](const char *field, const nlohmann::json &value) {
        nlohmann::json d = good;
        d[field] = value;
        return d;
    };
    CHECK_THAT(refused(with("format", "tessera-cost-model 9")), Catch::Contains("error[model.format]"));
    CHECK_THAT(refused(with("features", "sha256:00")), Catch::Contains("error[model.features]"));
    CHECK_THAT(refused(with("forest", good["forest"].get<std::string>() + " ")),
               Catch::Contains("its forest is not the one whose hash it states"));
    CHECK_THAT(refused(with("forest", 3)), Catch::Contains("error[model.format]"));
    CHECK_THAT(refused(nlohmann::json::array()), Catch::Contains("error[model.format]"));
    check_words([&] { boosted_model()->load(folder.path() / "none.json"); }, {"error[model.file]"});
    check_words([&] { boosted_model()->load("/dev/zero"); }, {"error[model.file]"});
}

}  // namespace tessera::test_cost_model

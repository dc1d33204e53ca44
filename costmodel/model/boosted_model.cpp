#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "costmodel/model/boosted_trees.h"
#include "costmodel/model/cost_model.h"
#include "costmodel/model/counted_samples.h"
#include "support/files/json_parse.h"
#include "support/files/json_text.h"
#include "support/files/untrusted_file.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

namespace {

using nlohmann::json;

constexpr double failed_below = 1;  // how far below the slowest of its task a failure is ranked, in log2
constexpr double max_below = 6;     // and how far below the fastest anything is
constexpr size_t fewest = 4;        // examples before anything is learnt
constexpr size_t many = 100;        // examples from which on deeper trees order better than small ones

// In log2; 0 at the bound.
double speed_of(const Example &e) { return std::log2(e.features.bound / e.seconds); }

// The draft, the trees of a model that was loaded, and the trees that were learnt since.
class BoostedModel : public CostModel {
public:
    std::vector<double> predict(const std::vector<Featured> &candidates) const override {
        std::vector<double> scores = before(candidates);
        if (!learnt_) return scores;
        const std::vector<double> more = learnt_->forest.sums(candidates);
        for (size_t i = 0; i < scores.size(); i++) scores[i] += more[i];
        return scores;
    }

    void update(const std::vector<Example> &examples) override {
        examples_.insert(examples_.end(), examples.begin(), examples.end());
        if (examples_.size() < fewest) return;
        std::map<std::string, std::vector<const Example *>> tasks;
        for (const Example &e : examples_) tasks[e.task].push_back(&e);
        std::vector<TreeRow> rows;
        size_t group = 0;
        for (const auto &[name, all] : tasks) {
            std::optional<double> fastest, slowest;
            for (const Example *e : all)
                if (e->seconds > 0) {
                    const double speed = speed_of(*e);
                    fastest = std::max(fastest.value_or(speed), speed), slowest = std::min(slowest.value_or(speed), speed);
                }
            std::vector<Featured> features;
            for (const Example *e : all) features.push_back(e->features);
            const std::vector<double> margins = before(features);
            for (size_t i = 0; i < all.size(); i++) {
                const double speed = all[i]->seconds > 0 ? speed_of(*all[i]) : slowest.value_or(0) - failed_below;
                rows.push_back({&all[i]->features, margins[i], std::max(speed - fastest.value_or(0), -max_below), group, 1});
            }
            group++;
        }
        TreeOptions options;
        // Few examples carry small trees, of one task or of several; many carry deep ones.
        if (rows.size() < many) options = {30, 3, 0.2, 0.5, 2};
        const std::string trained = train_trees(rows, options);
        learnt_ = {trained, Forest(trained)};
    }

    void load(const std::filesystem::path &file) override {
        const std::string subject = "cost model '" + file.string() + "'";
        const std::string text = read_regular(file, {"model", "cost model", "Name one that `cost-model train` wrote.", json_max_bytes});
        const json document = parse_json(text, subject);
        auto refuse = [&](const std::string &id, const std::string &why) { throw UserError(id, subject + ": " + why); };
        for (const char *field : {"format", "features", "forest", "sha256"})
            if (!document.is_object() || !document.contains(field) || !document.at(field).is_string())
                refuse("model.format", std::string("expected an object with a text '") + field + "', as `cost-model train` writes it.");
        if (document.at("format") != "tessera-cost-model 1")
            refuse("model.format", "expected the format 'tessera-cost-model 1', got '" + document.at("format").get<std::string>() +
                                       "'. Train it again with this version.");
        if (document.at("features") != feature_hash())
            refuse("model.features", "it was trained on another table of features than this version's; train it again from its data.");
        const std::string forest = document.at("forest");
        if (sha256(forest) != document.at("sha256"))
            refuse("model.format",
                   "its forest is not the one whose hash it states; the file was changed or cut. Restore it, or train it again.");
        loaded_ = {forest, Forest(checked_forest(forest, subject))};
        learnt_.reset();
        examples_.clear();
    }

    void save(const std::filesystem::path &file) const override {
        const std::optional<Trees> &trees = learnt_ ? learnt_ : loaded_;
        if (!trees)
            throw UserError("model.empty", "cost model '" + file.string() + "': expected a model that learnt something; it saw " +
                                               std::to_string(examples_.size()) + " examples, and the fewest are " +
                                               std::to_string(fewest) + ".");
        if (learnt_ && loaded_)
            throw UserError("model.layers",
                            "cost model '" + file.string() + "': it learnt beside a loaded model. Train one on all examples instead.");
        nlohmann::ordered_json document = {
            {"format", "tessera-cost-model 1"}, {"features", feature_hash()}, {"sha256", sha256(trees->text)}, {"forest", trees->text}};
        std::ofstream out(file, std::ios::binary);
        out << json_text(document, 1) << "\n";
        out.close();
        if (!out)
            throw UserError("model.file", "cost model '" + file.string() + "': expected to write it. Choose another place, or make room.");
    }

private:
    struct Trees {
        std::string text;  // as it was loaded or trained
        Forest forest;
    };
    std::optional<Trees> loaded_, learnt_;
    std::vector<Example> examples_;

    std::vector<double> before(const std::vector<Featured> &candidates) const {
        std::vector<double> scores = loaded_ ? loaded_->forest.sums(candidates) : std::vector<double>(candidates.size(), 0);
        for (size_t i = 0; i < scores.size(); i++) scores[i] += draft_score(candidates[i]);
        return scores;
    }
};

}  // namespace

std::unique_ptr<CostModel> boosted_model() { return std::make_unique<BoostedModel>(); }

}  // namespace tessera

#include "generators/records_command.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/error.h"
#include "autotune/records.h"
#include "costmodel/examples.h"
#include "generators/tune_progress.h"

namespace tessera {

namespace {

struct RecordsOptions {
    std::string what, file;
    std::vector<std::string> others;
    int64_t fewest = 2;
    bool says_fewest = false;
};

int list(const RecordsOptions &options) {
    const Records records(options.file, true);
    std::cout << fmt::format("{:56} {:>7} {:>9} {:>12} {:>11}\n", "task", "trials", "measured", "best/base", "base");
    for (const CampaignRow &row : records.campaigns())
        std::cout << fmt::format("{:56} {:7} {:9} {:12.3f} {:8.2f} us\n", row.task(), row.trials, row.measured, row.best_ratio, row.base_seconds * 1e6);
    return exit_ok;
}

std::string hash_of_features(const CampaignRow &row) {
    const nlohmann::json document = nlohmann::json::parse(row.document, nullptr, false);
    const bool has = document.is_object() && document.contains("features") && document["features"].is_string();
    return has ? document["features"].get<std::string>() : "none";
}

// Whether a model can learn from it.
bool is_example(const Trial &t, const CampaignRow &row) {
    const bool has_times = t.draft > 0 && t.bound > 0 && row.base_seconds > 0 && std::isfinite(row.base_seconds);
    return is_credible(t) && has_times && t.features.size() == feature_table().size();
}

// Times by way of the base's, which drift cancels from.
int export_examples(const RecordsOptions &options) {
    const Records records(options.file, true);
    std::vector<Example> all;
    for (const CampaignRow &row : records.campaigns()) {
        if (row.trials == 0) continue;
        if (hash_of_features(row) != feature_hash()) {
            note(fmt::format("{}: its {} trials are left out: their features are of another table than this version's", row.task(), row.trials));
            continue;
        }
        size_t incredible = 0;
        for (const Trial &t : records.trials(row.id)) {
            if (!is_example(t, row)) {
                incredible++;
                continue;
            }
            const bool timed = t.measurement.verdict == Verdict::measured || t.measurement.verdict == Verdict::slow;
            all.push_back({row.task(), {t.features, t.draft, t.bound}, timed ? row.base_seconds / t.measurement.ratio : 0});
        }
        if (incredible > 0)
            note(fmt::format("{}: {} of its {} trials are left out: they have times, ratios or features that cannot have been measured",
                             row.task(), incredible, row.trials));
    }
    write_examples(std::cout, all);
    return exit_ok;
}

int prune(const RecordsOptions &options) {
    Records(options.file, true);  // there must be one
    const Pruned pruned = Records(options.file).prune(options.fewest);
    std::cout << fmt::format("removed {} campaigns with fewer than {} measured trials\n", pruned.removed, options.fewest);
    if (pruned.claimed > 0) std::cout << fmt::format("kept {} of them, which a process works on\n", pruned.claimed);
    return exit_ok;
}

int run(const RecordsOptions &options) {
    if (options.what != "merge" && !options.others.empty())
        throw UserError("command.arguments", "records " + options.what + ": expected one database, got '" + join(options.others, "', '") +
                                                 "' after '" + options.file + "'. Leave it out; only merge takes several.");
    if (options.what != "prune" && options.says_fewest)
        throw UserError("command.arguments", "records " + options.what + ": --fewest is for prune. Leave it out.");
    if (options.what == "list") return list(options);
    if (options.what == "export") return export_examples(options);
    if (options.what == "prune") return prune(options);
    if (options.others.empty()) throw UserError("command.arguments", "records merge: expected the databases to merge into '" + options.file + "'; name one or more after it.");
    Records records(options.file);
    for (const std::string &other : options.others) records.merge(other);
    std::cout << fmt::format("{} campaigns in {}\n", records.campaigns().size(), options.file);
    return exit_ok;
}

}  // namespace

Command records_command(CLI::App &app) {
    auto options = std::make_shared<RecordsOptions>();
    CLI::App *line = app.add_subcommand("records", "List, merge, export or prune what tuning measured");
    line->add_option("what", options->what, "list; merge (others into the first); export (for cost-model, to standard output); prune")->required()->check(CLI::IsMember({"list", "merge", "export", "prune"}));
    line->add_option("file", options->file, "The database")->required();
    line->add_option("others", options->others, "For merge: databases of other machines");
    line->add_option("--fewest", options->fewest, "For prune: measured trials that a campaign must have to stay")->capture_default_str();
    return {line, [=] {
                options->says_fewest = line->count("--fewest") > 0;
                return run(*options);
            }};
}

}  // namespace tessera

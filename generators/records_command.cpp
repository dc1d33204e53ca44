#include "generators/records_command.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/error.h"
#include "autotune/records.h"
#include "costmodel/examples.h"

namespace tessera {

namespace {

struct RecordsOptions {
    std::string what, file;
    std::vector<std::string> others;
    int64_t fewest = 2;
};

std::string task_of(const CampaignRow &row) {
    const nlohmann::json document = nlohmann::json::parse(row.document, nullptr, false);
    return document.is_object() && document.contains("task") && document["task"].is_string() ? document["task"].get<std::string>() : "unknown";
}

int list(const RecordsOptions &options) {
    const Records records(options.file, true);
    std::cout << fmt::format("{:56} {:>7} {:>9} {:>12} {:>11}\n", "task", "trials", "measured", "best/base", "base");
    for (const CampaignRow &row : records.campaigns())
        std::cout << fmt::format("{:56} {:7} {:9} {:12.3f} {:8.2f} us\n", task_of(row), row.trials, row.measured, row.best_ratio, row.base_seconds * 1e6);
    return exit_ok;
}

// Times by way of the base's, which drift cancels from.
int export_examples(const RecordsOptions &options) {
    const Records records(options.file, true);
    std::vector<Example> all;
    for (const CampaignRow &row : records.campaigns())
        for (const Trial &t : records.trials(row.id)) {
            if (t.features.size() != feature_table().size() || row.base_seconds <= 0) continue;
            const bool timed = t.measurement.verdict == Verdict::measured || t.measurement.verdict == Verdict::slow;
            all.push_back({task_of(row), {t.features, t.draft, t.bound}, timed ? row.base_seconds / t.measurement.ratio : 0});
        }
    write_examples(std::cout, all);
    return exit_ok;
}

int run(const RecordsOptions &options) {
    if (options.what == "list") return list(options);
    if (options.what == "export") return export_examples(options);
    if (options.what == "prune") Records(options.file, true);  // there must be one
    Records records(options.file);
    if (options.what == "prune") {
        std::cout << fmt::format("removed {} campaigns with fewer than {} measured trials\n", records.prune(options.fewest), options.fewest);
        return exit_ok;
    }
    if (options.others.empty()) throw UserError("command.arguments", "records merge: expected the databases to merge into '" + options.file + "'; name one or more after it.");
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
    return {line, [=] { return run(*options); }};
}

}  // namespace tessera

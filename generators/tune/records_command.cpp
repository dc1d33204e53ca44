#include "generators/tune/records_command.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "autotune/records/records.h"
#include "autotune/search/campaign.h"
#include "costmodel/model/examples.h"
#include "generators/tune/recorded_features.h"
#include "generators/tune/tune_progress.h"
#include "support/text/error.h"

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
        std::cout << fmt::format("{:56} {:7} {:9} {:12.3f} {:8.2f} us\n", row.task(), row.trials, row.measured, row.best_ratio,
                                 row.base_seconds * 1e6);
    return exit_ok;
}

bool is_time(double seconds) { return seconds > 0 && std::isfinite(seconds); }

// Whether a model can learn from it.
bool is_example(const Trial &t, const CampaignRow &row) {
    const bool timed = is_timed(t.measurement.verdict);
    return is_credible(t.measurement) && is_time(row.base_seconds) && (!timed || is_time(row.base_seconds / t.measurement.ratio));
}

bool is_finite(const Featured &f) {
    return std::isfinite(f.draft) && std::isfinite(f.bound) &&
           std::all_of(f.values.begin(), f.values.end(), [](float value) { return std::isfinite(value); });
}

// The program that a campaign's ratios are to: the hash that its document states, "" where it states none.
std::string base_of(const CampaignRow &row) {
    const nlohmann::json document = row.stated();
    const auto base = document.find("base");
    return base != document.end() && base->is_string() ? base->get<std::string>() : "";
}

// The campaigns of `records`, those of one task with the same base given one time for it, the geometric mean of theirs. Each campaign times
// its base anew, at the pace that the machine has then, and ratios within it are free of that pace; only with one base time are those of
// several campaigns ratios of one task's times. A pace is a factor, so its mean is the geometric one.
std::vector<CampaignRow> at_one_pace(const Records &records) {
    std::vector<CampaignRow> campaigns = records.campaigns();
    std::map<std::pair<std::string, std::string>, std::vector<CampaignRow *>> alike;
    for (CampaignRow &row : campaigns)
        if (const std::string base = base_of(row); !base.empty() && is_time(row.base_seconds)) alike[{row.task(), base}].push_back(&row);
    for (const auto &[key, rows] : alike) {
        double logs = 0;
        for (const CampaignRow *row : rows) logs += std::log(row->base_seconds);
        if (rows.size() > 1)
            for (CampaignRow *row : rows) row->base_seconds = std::exp(logs / static_cast<double>(rows.size()));
    }
    return campaigns;
}

int export_examples(const Registry &registry, const RecordsOptions &options) {
    const Records records(options.file, true);
    std::vector<Example> all;
    for (const CampaignRow &row : at_one_pace(records)) {
        if (row.trials == 0) continue;
        const RecordedFeatures features(registry, row);
        if (!features.problem().empty()) {
            note(fmt::format("{}: its {} trials are left out: {}", row.task(), row.trials, features.problem()));
            continue;
        }
        size_t incredible = 0, other = 0;
        for (const Trial &t : records.trials(row.id)) {
            const std::optional<Featured> now = is_example(t, row) ? features.of(t) : std::nullopt;
            const bool timed = is_timed(t.measurement.verdict);
            if (now && is_finite(*now)) all.push_back({row.task(), *now, timed ? row.base_seconds / t.measurement.ratio : 0});
            else (is_example(t, row) ? other : incredible)++;
        }
        auto left_out = [&](size_t count, const char *why) {
            if (count > 0) note(fmt::format("{}: {} of its {} trials are left out: {}", row.task(), count, row.trials, why));
        };
        left_out(incredible, "they have times or ratios that cannot have been measured");
        left_out(other, "this version makes other tile programs of their schedules");
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

int run(const Registry &registry, const RecordsOptions &options) {
    if (options.what != "merge" && !options.others.empty())
        throw UserError("command.arguments", "records " + options.what + ": expected one database, got '" + join(options.others, "', '") +
                                                 "' after '" + options.file + "'. Leave it out; only merge takes several.");
    if (options.what != "prune" && options.says_fewest)
        throw UserError("command.arguments", "records " + options.what + ": --fewest is for prune. Leave it out.");
    if (options.what == "list") return list(options);
    if (options.what == "export") return export_examples(registry, options);
    if (options.what == "prune") return prune(options);
    if (options.others.empty())
        throw UserError("command.arguments",
                        "records merge: expected the databases to merge into '" + options.file + "'; name one or more after it.");
    for (const std::string &other : options.others) const Records readable(other, true);  // before a new file is begun
    Records records(options.file);
    for (const std::string &other : options.others) records.merge(other);
    std::cout << fmt::format("{} campaigns in {}\n", records.campaigns().size(), options.file);
    return exit_ok;
}

}  // namespace

Command records_command(ProgramLine &program, const Registry &registry) {
    auto options = std::make_shared<RecordsOptions>();
    const CommandLine line = program.command("records", "List, merge, export or prune what tuning measured");
    line.option("what", options->what, "list; merge (others into the first); export (for cost-model, to standard output); prune")
        .required()
        .one_of({"list", "merge", "export", "prune"});
    line.option("file", options->file, "The database").required();
    line.option("others", options->others, "Databases of other machines, to merge");
    line.option("--fewest", options->fewest, "Smallest number of measured trials with which prune keeps a campaign")
        .integer_in(1, max_trials)
        .shows_default();
    return {line, [=, &registry] {
                options->says_fewest = line.has("--fewest");
                return run(registry, *options);
            }};
}

}  // namespace tessera

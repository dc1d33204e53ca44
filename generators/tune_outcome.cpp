#include "generators/tune_outcome.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/error.h"
#include "algorithms/hash.h"
#include "autotune/report.h"
#include "autotune/tuned_schedule.h"
#include "bench/output_folder.h"
#include "generators/program_record.h"
#include "generators/tune_progress.h"
#include "schedules/canonical.h"
#include "schedules/explain.h"
#include "schedules/merge.h"
#include "schedules/pattern.h"

namespace tessera {

using nlohmann::ordered_json;

// What it was tuned for and resolves to, as `check` will find it.
static Provenance provenance_of(const Schedule &tuned, const TuneRun &run) {
    PreparedKernel p = run.prepared;
    p.schedule = tuned, p.ancestry = run.library.ancestry(tuned), p.resolved = without_patterns(resolve(tuned, run.library), p.declared);
    p.kernel = lower_variants(p.declared.name, p);
    Judge judge(run.options.model);
    return provenance_of(p, run.extents, run.options.threads, judge);
}

static ordered_json worth_json(const CampaignResult &r) {
    ordered_json worth = ordered_json::array();
    for (const Worth &w : r.worth) {
        ordered_json one = {{"stage", w.stage}, {"knob", w.knob}};
        if (w.gain > 0) one["gain"] = std::round(w.gain * 1000) / 1000;
        else one["gain"] = nullptr;
        worth.push_back(one);
    }
    return worth;
}

static uint64_t bytes_by(Metric metric, const Measurement &m) {
    return metric == Metric::code_size ? m.code_bytes : m.workspace_bytes;
}

// How it was chosen. What the model alone chose is the same everywhere, and so is what it says of it.
static ordered_json choice_json(const TuneRun &run, const CampaignResult &r) {
    const PreparedKernel &p = run.prepared;
    auto rounded = [](double x) { return std::round(x * 1e4) / 1e4; };
    ordered_json over = {{"schedule", p.schedule ? p.schedule->name() : "the space's most likely"},
                         {"hash", p.schedule ? p.schedule->hash() : ""}};
    if (run.options.deterministic) {
        over["predicted_speed"] = rounded(r.measurement.ratio);
        return {{"chosen_by", "the cost model alone"},
                {"seed", run.options.campaign.search.seed},
                {"over", over},
                {"candidates", r.trials.size()},
                {"versions", run.task.identity["versions"]}};
    }
    over["seconds"] = r.base_seconds;
    over["speed"] = {rounded(r.measurement.lower), rounded(r.measurement.ratio), rounded(r.measurement.upper)};
    ordered_json choice = {{"machine", run.task.identity["machine"]["processor"]},
                           {"seconds", r.measurement.seconds},
                           {"over", over},
                           {"trials", r.trials.size()},
                           {"versions", run.task.identity["versions"]},
                           {"worth", worth_json(r)}};
    const Goal &goal = run.options.campaign.goal;
    if (goal.metric == Metric::latency) return choice;
    choice["metric"] = {{"name", name_of(goal.metric)},
                        {"least_speed", goal.least_speed},
                        {"bytes", bytes_by(goal.metric, r.measurement)},
                        {"bytes_of_base", bytes_by(goal.metric, r.base_measurement)}};
    return choice;
}

std::optional<Schedule> artifact_of(const TuneRun &run, const CampaignResult &r) {
    if (!r.improved) return std::nullopt;
    const PreparedKernel &p = run.prepared;
    const Library &library = run.library;
    // A parent must be found by its name wherever the artifact is used.
    const std::vector<std::string> known = library.names();
    const bool named = p.schedule && std::find(known.begin(), known.end(), p.schedule->name()) != known.end() &&
                       library.find(p.schedule->name()) == *p.schedule;
    const std::vector<std::string> &features = p.resolved.requires_features.empty() ? p.target.features : p.resolved.requires_features;
    const std::string name = artifact_name(run.options, p, run.extents);
    Schedule tuned = tuned_schedule(name, r.best.stages, named ? p.schedule : std::nullopt, library, features);
    tuned = tuned.for_algorithm(p.declared.name, surface_hash(p.declared));
    const Provenance provenance = provenance_of(tuned, run);
    require(provenance.resolved == r.best.resolved, "an artifact resolves to the program that was measured");
    ordered_json measured = json_of(provenance);
    measured.update(choice_json(run, r));
    return tuned.with_measured(measured);
}

std::filesystem::path write_artifact(const Schedule &artifact, const std::filesystem::path &folder) {
    const std::filesystem::path place = folder / (artifact.name() + ".json");
    const OutputFolder out(place.parent_path());
    out.write(place.filename().string(), canonical_text(artifact.document()));
    out.publish(place.filename().string());
    return place;
}

static std::string report_json(const CampaignTask &task, const CampaignResult &r, const std::filesystem::path &file) {
    ordered_json trials = ordered_json::array();
    for (const Trial &t : r.trials)
        trials.push_back({{"number", t.number},
                          {"origin", t.origin},
                          {"verdict", name_of(t.measurement.verdict)},
                          {"ratio", t.measurement.ratio},
                          {"score", t.score},
                          {"message", t.measurement.message}});
    const ordered_json whole = {{"format", "tessera-tune"},
                                {"version", 1},
                                {"task", task.name},
                                {"improved", r.improved},
                                {"artifact", file},
                                {"bound_s", r.base.features.bound},
                                {"base_s", r.base_seconds},
                                {"best_s", r.measurement.seconds},
                                {"ratio", {r.measurement.lower, r.measurement.ratio, r.measurement.upper}},
                                {"search_s", r.search_s},
                                {"measure_s", r.measure_s},
                                {"made", r.made},
                                {"refused", r.refused},
                                {"trials", trials}};
    return whole.dump(2) + "\n";
}

static std::string choice_report(const TuneRun &run, const CampaignResult &r, const std::optional<Schedule> &artifact) {
    const PreparedKernel &p = run.prepared;
    std::string text =
        fmt::format("{}: {} candidates judged by the cost model alone; nothing was measured\n", run.task.name, r.trials.size());
    if (!artifact) return text + "  none is predicted to be faster than the base; no artifact is written\n";
    return text + fmt::format("  predicted {:.3f} of the speed of {}\n", r.measurement.ratio,
                              p.schedule ? p.schedule->name() : "the space's most likely schedule");
}

static std::string measured_report(const TuneRun &run, const CampaignResult &r, const std::optional<Schedule> &artifact) {
    const PreparedKernel &p = run.prepared;
    const double bound = r.base.features.bound;
    const bool calibrated = p.target.measured.has_value();
    std::string text = fmt::format("{}: {} trials in {:.0f} s ({}); {:.1f} s of them for {} schedules made and judged\n", run.task.name,
                                   r.trials.size(), r.progress.elapsed_s, verdicts_text(r.progress.verdicts), r.search_s, r.made);
    text += fmt::format("  base   {:>12}{}  {}\n", time_text(r.base_seconds), bound_text(bound, r.base_seconds, calibrated),
                        p.schedule ? p.schedule->name() : "the space's most likely schedule");
    if (!r.confirmed) return text + "  stopped before the best was measured again; no artifact is written, and --resume goes on from here\n";
    const Metric metric = run.options.campaign.goal.metric;
    const bool fast = metric == Metric::latency;
    if (!artifact && fast) return text + "  nothing that is surely faster was found; no artifact is written\n";
    if (!artifact)
        return text +
               fmt::format("  nothing of less {} was found that is fast enough; no artifact is written\n", fast ? "" : name_of(metric));
    if (!fast)
        text += fmt::format("  {}  {} bytes, the base {}: {}\n", name_of(metric), bytes_by(metric, r.measurement),
                            bytes_by(metric, r.base_measurement), gain_text(r.gain, metric));
    const double seconds = r.base_seconds / r.measurement.ratio;
    text += fmt::format("  tuned  {:>12}{}  {:.3f} of the base's speed (95 %: {:.3f} to {:.3f})\n", time_text(seconds),
                        bound_text(bound, seconds, calibrated), r.measurement.ratio, r.measurement.lower, r.measurement.upper);
    return text;
}

std::string report_of(const TuneRun &run, const CampaignResult &r, const std::optional<Schedule> &artifact,
                      const std::filesystem::path &file) {
    if (run.options.json) return report_json(run.task, r, file);
    std::string text = run.options.deterministic ? choice_report(run, r, artifact) : measured_report(run, r, artifact);
    if (!artifact) return text;
    const std::string changes = run.prepared.schedule ? diff(*run.prepared.schedule, *artifact, run.library) : "";
    if (!changes.empty()) text += "what differs from the base:\n" + changes;
    if (!r.worth.empty())
        text += fmt::format("what each change is worth ({}):\n", run.options.campaign.goal.metric == Metric::latency
                                                                     ? "the tuned speed over the speed without it"
                                                                     : "the bytes without it over the tuned bytes");
    for (const Worth &w : r.worth)
        text += fmt::format("  {:40} {}\n", w.stage + "." + w.knob, w.gain > 0 ? fmt::format("{:.3f}", w.gain) : "the others need it");
    return text + "wrote " + file.string() + "\n";
}

void write_page(const TuneRun &run, const CampaignResult &r, const std::optional<Schedule> &artifact, const std::filesystem::path &file) {
    const PreparedKernel &p = run.prepared;
    const CampaignTask &task = run.task;
    const TuneOptions &options = run.options;
    Report report{task.name, p.schedule ? p.schedule->name() : "the space's most likely schedule", r, p.target, task.space.threads, {}, "", file.string(), {}};
    report.work = work_of(p.bound, r.base.program, all_extents(p.bound, task.space.extents));
    if (p.schedule && artifact) report.changes = diff(*p.schedule, *artifact, run.library);
    const ordered_json &id = task.identity;
    auto text = [](const ordered_json &value) {
        std::string all;
        if (!value.is_structured()) return value.is_string() ? value.get<std::string>() : value.dump();
        for (const auto &[name, part] : value.items())
            all += (all.empty() ? "" : ", ") + (value.is_object() ? name + " " : "") + (part.is_string() ? part.get<std::string>() : part.dump());
        return all.empty() ? std::string("none") : all;
    };
    for (const char *name : {"machine", "target", "runners", "threads", "numerics", "options", "fixed", "extents", "model", "versions", "semantic"})
        if (id.contains(name)) report.origin.push_back({name, text(id[name])});
    report.origin.push_back({"seed", std::to_string(options.campaign.search.seed)});
    report.origin.push_back({"records", options.records});
    const std::filesystem::path place = std::filesystem::absolute(options.page);
    const OutputFolder out(place.parent_path());
    out.write(place.filename().string(), report_page(report));
    out.publish(place.filename().string());
}

}  // namespace tessera

#include "generators/tune/tune_outcome.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/text/hash.h"
#include "algorithms/transform/inline_calls.h"
#include "autotune/report/report.h"
#include "autotune/search/tuned_schedule.h"
#include "compiler/lower/lower.h"
#include "generators/certify/comparison.h"
#include "generators/kernel/program_record.h"
#include "generators/tune/tune_progress.h"
#include "schedules/artifact/explain.h"
#include "schedules/artifact/merge.h"
#include "schedules/knobs/canonical.h"
#include "schedules/knobs/reduction_tree.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/shell_words.h"
#include "support/text/time_text.h"

namespace tessera {

using nlohmann::ordered_json;

// What a child of the parent has below it. Calls take the schedules that they took when this was tuned, those that matched by name from
// now on; where these have variants, which a child cannot take away, none.
static Fields inherited_from(const Schedule &parent, const TuneRun &run, KnobsByStage &stages) {
    const ScheduledKernel &p = run.prepared;
    Fields own = merged(parent, run.library);
    if (p.request.declared.calls().empty()) return own;
    const auto variants = own.find({"variants"});
    const bool are_own = p.choice.applied.resolved.variants.size() == (variants == own.end() ? 0 : variants->second.value.size());
    Fields all = are_own ? p.choice.applied.program.fields : own;
    if (variants != own.end()) all.insert(*variants);
    for (const Call &call : p.request.declared.calls()) {
        const FieldPath use = {"stages", call.scope, name_of(Knob::use)};
        const auto taken = all.find(use);
        stages[call.scope].use = are_own && taken != all.end() ? taken->second.value.get<std::string>() : "none";
        if (!own.count(use)) all.erase(use);
    }
    return all;
}

// A schedule for the kernel that resolves to these stages.
static Schedule schedule_of(const TuneRun &run, const KnobsByStage &found) {
    const ScheduledKernel &p = run.prepared;
    KnobsByStage stages = with_trees(found, inline_calls(p.request.declared));
    const std::optional<Schedule> parent = parent_of(run);
    for (const Call &call : p.request.declared.calls()) stages[call.scope].use = "none";
    const std::vector<std::string> &features =
        p.choice.applied.resolved.requires_features.empty() ? p.request.target.features : p.choice.applied.resolved.requires_features;
    const std::string name = artifact_name(run.options, p, {run.extents});
    const std::optional<Fields> inherited = parent ? std::optional(inherited_from(*parent, run, stages)) : std::nullopt;
    const Schedule tuned =
        parent ? tuned_schedule(name, stages, *parent, *inherited, features) : tuned_schedule(name, stages, parent, run.library, features);
    return tuned.for_algorithm(p.request.declared.name, surface_hash(p.request.declared));
}

static ordered_json ablations_json(const CampaignResult &r) {
    ordered_json ablations = ordered_json::array();
    for (const Ablation &w : r.ablations) {
        ordered_json one = {{"changes", ordered_json::array()}};
        for (const auto &[stage, knob] : w.changes) one["changes"].push_back({{"stage", stage}, {"knob", knob}});
        if (w.gain > 0) one["gain"] = std::round(w.gain * 1000) / 1000;
        else one["gain"] = nullptr, one["without"] = name_of(w.without);
        ablations.push_back(one);
    }
    return ablations;
}

static uint64_t bytes_by(Metric metric, const Measurement &m) { return metric == Metric::code_size ? m.code_bytes : m.workspace_bytes; }

// The schedule to beat.
static std::string base_name(const TuneRun &run, const CampaignResult &r) {
    if (const Schedule *base = named_base(run)) return base->name();
    if (run.prepared.choice.match.schedule) return "the derived schedule";
    return r.base.stages.empty() ? "plain loops" : "the space's most likely schedule";
}

// How it was chosen. What the model alone chose is the same everywhere, and so is what it says of it.
static ordered_json choice_json(const TuneRun &run, const CampaignResult &r) {
    auto rounded = [](double x) { return std::round(x * 1e4) / 1e4; };
    const Schedule *base = named_base(run);
    ordered_json over = {{"schedule", base_name(run, r)}, {"hash", base ? base->hash() : ""}};
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
                           {"worth", ablations_json(r)}};
    if (run.options.campaign.measure.cold) choice["caches"] = "cold";
    if (!run.task.space.ahead.empty()) choice["prepack"] = run.task.space.ahead;
    if (!run.options.inputs.ranges.empty()) choice["ranges"] = run.options.inputs.ranges;
    const Goal &goal = run.options.campaign.goal;
    if (goal.metric == Metric::latency) return choice;
    if (goal.metric == Metric::throughput) {
        choice["metric"] = {
            {"name", name_of(goal.metric)}, {"callers", goal.callers}, {"calls_per_second", goal.callers / r.measurement.seconds}};
        return choice;
    }
    choice["metric"] = {{"name", name_of(goal.metric)},
                        {"least_speed", goal.min_speed},
                        {"bytes", bytes_by(goal.metric, r.measurement)},
                        {"bytes_of_base", bytes_by(goal.metric, r.base_measurement)}};
    return choice;
}

// Candidates are compared with their tile programs; only this compares one with what was declared.
static void check_computes_algorithm(const PreparedKernel &tuned, const TuneRun &run) {
    const std::string difference = difference_from_algorithm(tuned, run.extents, run.task.inputs);
    if (!difference.empty())
        throw UserError("tune.wrong", fmt::format("{}: the schedule that was found computes something else than the algorithm, and no "
                                                  "artifact is written: {}. A schedule that splits a fold uses the combine of its monoid "
                                                  "beside its step: make them agree.",
                                                  tuned.request.declared.name, difference));
}

std::optional<Schedule> artifact_of(const TuneRun &run, const CampaignResult &r) {
    if (!r.improved) return std::nullopt;
    const Schedule tuned = schedule_of(run, r.best.stages);
    Judge judge(*run.registry, run.options.model);
    const PreparedKernel prepared = prepared_with(tuned, run);
    check_computes_algorithm(prepared, run);
    const Provenance provenance = provenance_of(prepared, run.extents, run.options.threads, judge);
    require(provenance.resolved == r.best.resolved, "an artifact resolves to the program that was measured");
    ordered_json measured = json_of(provenance);
    measured.update(choice_json(run, r));
    return tuned.with_measured(measured);
}

static const Candidate &winner_of(const CampaignResult &r) { return r.improved ? r.best : r.base; }

static bool is_new(const TunedShape &s) { return s.result && s.result->improved && !s.existing && (s.within || !parent_of(*s.run)); }

void keep_existing(std::vector<TunedShape> &shapes) {
    for (TunedShape &s : shapes) s.existing = existing_artifact(*s.run, s.result);
}

static const ShapeCase &case_for(const std::vector<ShapeCase> &cases, const Extents &extents) {
    return *std::find_if(cases.begin(), cases.end(), [&](const ShapeCase &c) {
        return std::all_of(c.when.begin(), c.when.end(), [&](const Condition &w) { return extents.at(w.dim) <= w.bound; });
    });
}

// Where nothing was measured, what a campaign begins with.
static KnobsByStage stages_of(const TunedShape &s) {
    if (s.existing) return s.existing->stages;
    if (s.result) return winner_of(*s.result).stages;
    return first_stages(s.run->task);
}

bool is_over_parent(const std::vector<TunedShape> &shapes) { return parent_of(*shapes[0].run).has_value(); }

// Which schedule runs where.
struct Choices {
    KnobsByStage otherwise;
    std::vector<TunedVariant> variants;  // tried in order
    std::vector<std::string> texts;      // of each shape
    size_t recorded = 0;                 // the shape whose run prepares the artifact
};

// Without a parent: each shape has a part of all extents.
static Choices nearest_choices(const std::vector<TunedShape> &shapes, const std::vector<Extents> &extents,
                               const std::vector<KnobsByStage> &stages) {
    const std::vector<ShapeCase> cases =
        shape_cases(extents, [&](size_t a, size_t b) { return document_of(stages[a]) == document_of(stages[b]); });
    Choices choices;
    for (size_t i = 0; i + 1 < cases.size(); i++) choices.variants.push_back({cases[i].when, stages[cases[i].shape]});
    choices.recorded = cases.back().shape, choices.otherwise = stages[choices.recorded];
    for (const TunedShape &s : shapes) choices.texts.push_back(condition_text(case_for(cases, s.run->extents).when));
    return choices;
}

// Over a parent: what was found holds in its box, and before the variants of the parent.
static Choices boxed_choices(const std::vector<TunedShape> &shapes, const std::vector<KnobsByStage> &stages) {
    Choices choices;
    const TuneRun &run = *shapes.back().run;
    const Algorithm inlined = inline_calls(run.prepared.request.declared);
    choices.otherwise = with_trees(run.prepared.choice.applied.resolved.stages, inlined), choices.recorded = shapes.size() - 1;
    for (size_t i = 0; i < shapes.size(); i++) {
        choices.texts.push_back("the schedule to beat");
        if (!shapes[i].within) continue;
        choices.variants.push_back({conditions_of(*shapes[i].within), stages[i]});
        choices.texts.back() = condition_text(choices.variants.back().when);
    }
    for (const Variant &v : run.prepared.choice.applied.resolved.variants)
        choices.variants.push_back({v.when, with_trees(v.stages, inlined)});
    return choices;
}

static Choices choices_of(const std::vector<TunedShape> &shapes) {
    std::vector<Extents> extents;
    std::vector<KnobsByStage> stages;
    for (const TunedShape &s : shapes)
        extents.push_back(s.run->extents), stages.push_back(with_trees(stages_of(s), inline_calls(s.run->prepared.request.declared)));
    return is_over_parent(shapes) ? boxed_choices(shapes, stages) : nearest_choices(shapes, extents, stages);
}

static Schedule schedule_of(const TuneRun &run, const Choices &choices) {
    return with_variants(schedule_of(run, choices.otherwise), choices.otherwise, choices.variants);
}

PreparedKernel kernel_of(const std::vector<TunedShape> &shapes) {
    const Choices choices = choices_of(shapes);
    const TuneRun &run = *shapes[choices.recorded].run;
    return prepared_with(schedule_of(run, choices), run);
}

// That the program of a shape with something new is one that was timed.
static void check_was_measured(const TunedShape &s, const PreparedKernel &artifact) {
    const std::string resolved = resolved_hash(variant_for(artifact.compiled.kernel, s.run->extents).program);
    require(resolved == (s.confirmed.empty() ? s.result->best.resolved : s.confirmed),
            "an artifact resolves to the programs that were measured");
}

std::optional<Schedule> artifact_of(const std::vector<TunedShape> &shapes, std::vector<std::string> &texts) {
    if (std::none_of(shapes.begin(), shapes.end(), is_new)) return std::nullopt;
    const Choices choices = choices_of(shapes);
    texts = choices.texts;
    const TuneRun &run = *shapes[choices.recorded].run;
    const Schedule tuned = schedule_of(run, choices);
    const PreparedKernel prepared = prepared_with(tuned, run);
    Judge judge(*run.registry, run.options.model);
    const auto is_measured = [](const TunedShape &s) { return s.result || s.existing; };
    const Extents &recorded =
        is_measured(shapes[choices.recorded]) ? run.extents : std::find_if(shapes.rbegin(), shapes.rend(), is_measured)->run->extents;
    ordered_json measured = json_of(provenance_of(prepared, recorded, run.options.threads, judge));
    ordered_json each = ordered_json::array(), unreached = ordered_json::array();
    for (size_t i = 0; i < shapes.size(); i++) {
        const TunedShape &s = shapes[i];
        if (!is_measured(s)) {
            unreached.push_back(s.run->extents);
            continue;
        }
        check_computes_algorithm(prepared, *s.run);
        if (is_new(s)) check_was_measured(s, prepared);
        ordered_json one = {{"extents", s.run->extents}, {"runs", texts[i]}};
        if (s.within) one["within"] = {{"low", s.within->low}, {"high", s.within->high}};
        for (const auto &[probe, speed] : s.probed) one["near"].push_back({{"extents", probe}, {"speed", std::round(speed * 1000) / 1000}});
        if (s.existing) {
            for (const auto &[field, value] : s.existing->choice.items())
                if (!one.contains(field)) one[field] = ordered_json(value);
            each.push_back(one);
            continue;
        }
        one.update(choice_json(*s.run, *s.result));
        for (const char *common : {"machine", "versions"}) measured[common] = one[common], one.erase(common);
        each.push_back(one);
    }
    measured["shapes"] = each;
    if (!unreached.empty()) measured["unreached"] = unreached;
    return tuned.with_measured(measured);
}

Written write_artifact(const TuneRun &run, const std::optional<Schedule> &artifact) {
    Written written;
    if (!artifact) return written;
    const std::filesystem::path place = artifact_place(run);
    try {
        const OutputFolder out(place.parent_path());
        out.write(place.filename().string(), canonical_text(artifact->document()));
        out.publish(place.filename().string());
        written.file = place;
    } catch (const UserError &error) {
        const std::string again =
            run.options.deterministic ? "" : " Nothing that was measured is lost: with --resume the same command writes it.";
        written.failure.emplace(error.id(), error.message() + again);
    }
    return written;
}

Written write_artifact(const TuneRun &run, const CampaignResult &result, const std::optional<Schedule> &artifact) {
    if (!artifact || !existing_artifact(run, result)) return write_artifact(run, artifact);
    Written written;
    written.kept = kept_text(run);
    return written;
}

std::string kept_text(const TuneRun &run) {
    const std::string why = run.options.deterministic
                                ? "it was measured, and this choice is only predicted. Name"
                                : "its schedule was not measured this time, and may be better. Give more --trials, name";
    return fmt::format("kept {}, since {} another artifact with --name or --out, or delete that one\n", artifact_place(run).string(), why);
}

void Written::check() const {
    if (failure) throw UserError(*failure);
}

// A kernel takes it unasked where its name is of the kernel and its target, and it is the one for time with the arguments as they are.
std::string written_text(const TuneRun &run, const Written &written) {
    if (!written.kept.empty()) return written.kept;
    if (written.file.empty()) return "";
    const ScheduledKernel &p = run.prepared;
    const bool is_found =
        run.options.campaign.goal.metric == Metric::latency && run.task.space.ahead.empty() &&
        artifact_name(run.options, p, {run.extents})
            .starts_with(fmt::format("{}/{}/{}/", p.request.declared.name, p.request.declared.numerics.name, p.request.target.name));
    const std::string text = "wrote " + written.file.string() + "\n";
    if (!is_found)
        return text + fmt::format("it is taken with --schedule {0}; in CMake, SCHEDULE {0}\n", shell_word(written.file.string()));
    if (is_own_folder(*run.registry, run.options.out)) return text + "kernels that name no schedule take it from now on\n";
    return text + fmt::format("kernels that name no schedule take it with --schedule-dir {0}; in CMake, SCHEDULE_DIRS {0}\n",
                              shell_word(run.options.out));
}

ordered_json times_json(const CampaignResult &r) {
    const bool measured = r.base_seconds > 0;
    const auto number = [&](double x) { return measured ? ordered_json(x) : ordered_json(nullptr); };
    const ordered_json ratio = r.trials.empty() ? ordered_json(nullptr) : ordered_json(r.measurement.ratio);  // or what the model predicts
    return {{"base_s", number(r.base_seconds)},
            {"best_s", number(r.measurement.seconds)},
            {"ratio", {number(r.measurement.lower), ratio, number(r.measurement.upper)}}};
}

static std::string report_json(const CampaignTask &task, const CampaignResult &r, const Written &written) {
    const ordered_json times = times_json(r);
    ordered_json trials = ordered_json::array();
    for (const Trial &t : r.trials)
        trials.push_back({{"number", t.number},
                          {"origin", t.origin},
                          {"verdict", name_of(t.measurement.verdict)},
                          {"ratio", t.measurement.ratio},
                          {"score", t.score},
                          {"message", t.measurement.message}});
    ordered_json finalists = ordered_json::array();
    for (const auto &[resolved, m] : r.finalists)
        finalists.push_back(
            {{"resolved", resolved}, {"verdict", name_of(m.verdict)}, {"seconds", m.seconds}, {"ratio", {m.lower, m.ratio, m.upper}}});
    const ordered_json whole = {{"format", "tessera-tune"},
                                {"version", 1},
                                {"task", task.name},
                                {"improved", r.improved},
                                {"stopped", r.stopped},
                                {"artifact", written.file},
                                {"kept", !written.kept.empty()},
                                {"chosen_by", r.base_seconds > 0 || r.trials.empty() ? "measurements" : "the cost model alone"},
                                {"bound_s", task.space.target.measured ? ordered_json(r.base.features.bound) : ordered_json(nullptr)},
                                {"base_s", times["base_s"]},
                                {"best_s", times["best_s"]},
                                {"ratio", times["ratio"]},
                                {"search_s", r.search_s},
                                {"measure_s", r.measure_s},
                                {"score_s", r.score_s},
                                {"elapsed_s", r.progress.elapsed_s},
                                {"made", r.made},
                                {"scored", r.scored},
                                {"refused", r.refused},
                                {"impossible", r.impossible},
                                {"other_bits", r.other_bits},
                                {"trials", trials},
                                {"finalists", finalists}};
    return document_text(whole);
}

// Empty where the cost model is sound.
static std::string impossible_text(const CampaignResult &r) {
    if (r.impossible == 0) return "";
    return fmt::format(
        "  {} of the {} schedules made were not tried: the cost model predicts them faster than a processor can do their "
        "work, which is an error of the model\n",
        r.impossible, r.made);
}

// Empty where every schedule may give bits of its own.
static std::string bits_text(const TuneRun &run, const CampaignResult &r) {
    if (!run.options.campaign.search.keep_bits) return "";
    return fmt::format("  the bits of results are those of the base; {} of the {} schedules made would give others, and were not tried\n",
                       r.other_bits, r.made);
}

static std::string choice_report(const TuneRun &run, const CampaignResult &r, const std::optional<Schedule> &artifact) {
    std::string text =
        fmt::format("{}: {} candidates judged by the cost model alone; nothing was measured\n", run.task.name, r.trials.size()) +
        impossible_text(r) + bits_text(run, r);
    if (!artifact) return text + "  none is predicted to be faster than the base; no artifact is written\n";
    return text + fmt::format("  predicted {:.3f} of the speed of {}\n", r.measurement.ratio, base_name(run, r));
}

static std::string measured_report(const TuneRun &run, const CampaignResult &r, const std::optional<Schedule> &artifact) {
    const ScheduledKernel &p = run.prepared;
    const double bound = r.base.features.bound;
    const bool calibrated = p.request.target.measured.has_value();
    std::string text = fmt::format("{}: {} trials in {:.0f} s ({}); {:.1f} s of them for {} schedules made and judged\n", run.task.name,
                                   r.trials.size(), r.progress.elapsed_s, verdicts_text(r.progress.verdicts), r.search_s, r.made);
    text += impossible_text(r) + bits_text(run, r);
    text +=
        fmt::format("  base   {:>12}{}  {}\n", time_text(r.base_seconds), bound_text(bound, r.base_seconds, calibrated), base_name(run, r));
    if (r.stopped) text += "  " + stopped_text(r.trials.size(), static_cast<size_t>(r.progress.budget)) + "\n";
    if (!r.confirmed)
        return text + "  stopped before the best was measured again; no artifact is written, and --resume goes on from here\n";
    const Metric metric = run.options.campaign.goal.metric;
    const bool fast = is_speed(metric);
    if (r.trials.size() == 1 && !r.stopped)
        return text + "  the first trial is the schedule to beat, and no other was asked for; no artifact is written\n";
    if (!artifact && fast) return text + "  nothing that is surely faster was found; no artifact is written\n";
    if (!artifact)
        return text +
               fmt::format("  nothing of less {} was found that is fast enough; no artifact is written\n", fast ? "" : name_of(metric));
    if (!fast)
        text += fmt::format("  {}  {} bytes, the base {}: {}\n", name_of(metric), bytes_by(metric, r.measurement),
                            bytes_by(metric, r.base_measurement), gain_text(r.gain, metric));
    const double seconds = r.base_seconds / r.measurement.ratio;
    if (metric == Metric::throughput)
        text += fmt::format("  throughput  {:.4g} calls a second of {} callers\n", run.options.campaign.goal.callers / seconds,
                            run.options.campaign.goal.callers);
    text += fmt::format("  tuned  {:>12}{}  {:.3f} of the base's speed (95 %: {:.3f} to {:.3f})\n", time_text(seconds),
                        bound_text(bound, seconds, calibrated), r.measurement.ratio, r.measurement.lower, r.measurement.upper);
    return text;
}

std::string report_of(const TuneRun &run, const CampaignResult &r, const std::optional<Schedule> &artifact, const Written &written) {
    if (run.options.json) return report_json(run.task, r, written);
    std::string text = run.options.deterministic ? choice_report(run, r, artifact) : measured_report(run, r, artifact);
    if (!artifact) return text;
    const std::string changes = run.prepared.choice.match.schedule ? diff(*run.prepared.choice.match.schedule, *artifact, run.library) : "";
    if (!changes.empty()) text += "what differs from the base:\n" + changes;
    if (!r.ablations.empty())
        text += fmt::format("what each change is worth ({}):\n", is_speed(run.options.campaign.goal.metric)
                                                                     ? "the tuned speed over the speed without it"
                                                                     : "the bytes without it over the tuned bytes");
    for (const auto &[worth, changes] : ablation_rows(r.ablations)) text += fmt::format("  {:>6}  {}\n", worth, changes);
    return text + written_text(run, written);
}

std::string stopped_report(const TuneRun &run, const UserError &stopped) {
    if (!run.options.json) return stopped.message() + "\n";
    CampaignResult none;
    none.stopped = true;
    return report_json(run.task, none, {});
}

void write_page(const TuneRun &run, const CampaignResult &r, const std::optional<Schedule> &artifact, const std::filesystem::path &file) {
    const ScheduledKernel &p = run.prepared;
    const CampaignTask &task = run.task;
    const TuneOptions &options = run.options;
    Report report{task.name, base_name(run, r), r, p.request.target, task.space.threads, Work(), "", file.string(), {}};
    report.work = work_of(p.request.bound, r.base.program, all_extents(p.request.bound, task.space.extents));
    if (p.choice.match.schedule && artifact) report.changes = diff(*p.choice.match.schedule, *artifact, run.library);
    const ordered_json &id = task.identity;
    auto text = [](const ordered_json &value) {
        std::string all;
        if (!value.is_structured()) return value.is_string() ? value.get<std::string>() : json_text(value);
        for (const auto &[name, part] : value.items())
            all += (all.empty() ? "" : ", ") + (value.is_object() ? name + " " : "") +
                   (part.is_string() ? part.get<std::string>() : json_text(part));
        return all.empty() ? std::string("none") : all;
    };
    for (const char *name :
         {"machine", "target", "runners", "threads", "numerics", "options", "fixed", "extents", "model", "versions", "semantic"})
        if (id.contains(name)) report.origin.push_back({name, text(id[name])});
    report.origin.push_back({"seed", std::to_string(options.campaign.search.seed)});
    report.origin.push_back({"records", options.records});
    const std::filesystem::path place = std::filesystem::absolute(options.page);
    const OutputFolder out(place.parent_path());
    out.write(place.filename().string(), report_page(report));
    out.publish(place.filename().string());
}

}  // namespace tessera

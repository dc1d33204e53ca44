#include "generators/tune/tune_many.h"

#include <chrono>
#include <iostream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/text/hash.h"
#include "algorithms/transform/given_extents.h"
#include "autotune/search/trial_allocation.h"
#include "generators/commands/command.h"
#include "generators/tune/tune_outcome.h"
#include "generators/tune/tune_progress.h"
#include "support/processes/interruption.h"
#include "support/text/error.h"
#include "support/text/time_text.h"

namespace tessera {

TuneOptions options_for(const CampaignEntry &entry, const TuneOptions &all) {
    TuneOptions one = all;
    const KernelTask &t = entry.task;
    one.kernel.algorithm = t.algorithm, one.kernel.numerics = t.numerics, one.kernel.target = t.target,
    one.kernel.schedule = entry.schedule;
    one.kernel.options = assignments(t.options), one.kernel.shape = assignments(t.fixed), one.extents = assignments(t.extents);
    one.threads = static_cast<int>(t.threads);
    one.kernel.given = entry.callee, one.kernel.quiet = true;
    return one;
}

bool is_foreign(const UserError &error) {
    return error.id() == "command.target" || error.id() == "tune.gpu" || error.id() == "tune.device";
}

namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// A file says extents in fields, not in options.
void check_extents(const Registry &registry, const TuneOptions &options, const CampaignEntry &entry) {
    const Algorithm declared = load_algorithm(registry, options.kernel);
    Extents given = entry.task.fixed;
    given.insert(entry.task.extents.begin(), entry.task.extents.end());
    const Extents all = given_extents(declared, given);
    for (const Dim &d : declared.dims)
        if (d.kind == DimKind::symbolic && !all.count(d.name))
            throw UserError("campaign.extents",
                            declared.name + ": dim " + d.name +
                                " has no extent; give one in \"fixed\", which fixes it in the kernel, or in \"extents\", "
                                "which does not.");
}

// One kernel's part of it.
struct SharedTask {
    CampaignEntry entry;
    std::unique_ptr<TuneRun> run;
    std::unique_ptr<Campaign> campaign;
    size_t recorded = 0;      // trials that the records had
    std::string refusal;      // why it is left out
    bool is_stopped = false;  // before its base was measured
    CampaignResult result;
    Written written;

    std::string name() const { return run ? run->task.name : to_string(entry.task); }
};

AllocatedTask allocated_task(const SharedTask &part) { return {part.entry.weight, {}, {}, part.campaign != nullptr}; }

void note_progress(AllocatedTask &allocated, const Progress &p) {
    if (p.best_seconds <= 0 && p.base_seconds <= 0) return;
    allocated.best.push_back(p.best_seconds > 0 ? std::min(p.best_seconds, p.base_seconds) : p.base_seconds);
    allocated.trials.push_back(p.trials);
}

// The program whose callees the tasks are.
struct Whole {
    std::string name;
    double seconds = 0;   // of one run with the schedules to beat; 0 where it was not timed
    std::string refusal;  // why it was not
};

class SharedSearch {
public:
    SharedSearch(const Registry &registry, const TuneOptions &options, const CampaignFile &file)
        : options_(options), records_(options.records), seconds_(file.seconds.value_or(0)) {
        const size_t trials = file.trials ? static_cast<size_t>(*file.trials) : seconds_ > 0 ? size_t{max_trials} : 64 * file.tasks.size();
        options_.campaign.trials = static_cast<int>(trials), options_.campaign.seconds = 0;
        options_.campaign.stop = options_.campaign.measure.stop = interruption_.asked();
        options_.campaign.measure.abandon = interruption_.asked_again(), options_.campaign.measure.warn = warn;
        if (!options.kernel.quiet) options_.campaign.note = note;
        if (trials < file.tasks.size())
            throw UserError("campaign.budget",
                            fmt::format("tune: expected at least one trial for each of the {} tasks, got {}. Raise --trials "
                                        "or the file's budget, or tune fewer kernels.",
                                        file.tasks.size(), trials));
        prepare_all(registry, file);
        for (SharedTask &part : parts_)
            if (is_stopped() && part.refusal.empty()) part.refusal = "it was stopped before", part.is_stopped = true;
            else if (part.refusal.empty()) begin(part);
    }

    void time_whole(const TunedProgram &program) {
        whole_ = {program.name, 0, ""};
        if (is_stopped()) {
            whole_->refusal = "it was stopped before";
            return;
        }
        try {
            whole_->seconds = program.seconds();
        } catch (const UserError &error) { whole_->refusal = error.what(); }
    }

    void search() {
        std::vector<AllocatedTask> allocation;
        for (const SharedTask &part : parts_) {
            allocation.push_back(allocated_task(part));
            if (part.campaign) note_progress(allocation.back(), part.campaign->progress());
        }
        const size_t budget = this->budget();
        while (!is_stopped() && trials() < budget && !(seconds_ > 0 && since() >= seconds_)) {
            const auto next = next_task(allocation);
            if (!next) break;
            allocation[*next].is_open = parts_[*next].campaign->step(budget - trials());
            const Progress &p = parts_[*next].campaign->progress();
            note_progress(allocation[*next], p);
            if (!options_.kernel.quiet)
                std::cerr << fmt::format("{}  {}: {} trials{}\n", trials_text(static_cast<int>(trials()), static_cast<int>(budget)),
                                         parts_[*next].name(), p.trials,
                                         p.best_seconds > 0
                                             ? fmt::format(", best {:.3f} of the base's speed, {}", p.best_ratio, time_text(p.best_seconds))
                                             : "");
        }
        ends_before_ = is_stopped() && trials() < budget;
    }

    void finish() {
        for (SharedTask &part : parts_) {
            if (!part.campaign) continue;
            part.result = part.campaign->finish();
            part.campaign.reset();
            try {
                part.written = write_artifact(*part.run, part.result, artifact_of(*part.run, part.result));
            } catch (const UserError &error) {
                if (error.id() != "tune.wrong") throw;
                part.refusal = error.what();
            }
        }
    }

    const std::vector<SharedTask> &parts() const { return parts_; }
    const std::optional<Whole> &whole() const { return whole_; }
    bool ends_before() const { return ends_before_; }  // it was stopped before all trials were measured
    // All that the records have counts, be it more than was asked for.
    size_t budget() const {
        size_t recorded = 0;
        for (const SharedTask &part : parts_) recorded += part.recorded;
        return std::max(static_cast<size_t>(options_.campaign.trials), recorded);
    }
    double since() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

private:
    TuneOptions options_;
    Records records_;
    double seconds_;
    Interruption interruption_;
    std::vector<SharedTask> parts_;
    std::optional<Whole> whole_;
    Clock::time_point begin_ = Clock::now();
    bool ends_before_ = false;

    bool is_stopped() const { return interruption_.asked()->load(); }

    void prepare_all(const Registry &registry, const CampaignFile &file) {
        size_t wrong = 0, foreign = 0;
        std::set<std::string> told, names;  // ids of errors; artifacts
        std::string all;
        for (const CampaignEntry &entry : file.tasks) {
            parts_.emplace_back().entry = entry;
            SharedTask &part = parts_.back();
            try {
                const TuneOptions options = options_for(entry, options_);
                check_extents(registry, options, entry);
                part.run = prepare_run(registry, options);
                give_name(*part.run, names);
                check_output(*part.run);
            } catch (const UserError &error) {
                part.refusal = error.what();
                (file.skips_foreign && is_foreign(error) ? foreign : wrong)++;
                all += "  " + to_string(entry.task) + ": " + (told.insert(error.id()).second ? error.what() : told_again(error)) + "\n";
            }
        }
        if (wrong > 0 || foreign == parts_.size())
            throw UserError("campaign.tasks",
                            fmt::format("{} of {} tasks cannot be tuned, and nothing was measured:\n{}Correct or remove them.",
                                        wrong + foreign, parts_.size(), all));
    }

    // Two callees of one name may differ in more than their extents.
    static void give_name(TuneRun &run, std::set<std::string> &taken) {
        const std::string name = artifact_name(run.options, run.prepared, {run.extents});
        if (taken.insert(name).second) return;
        constexpr size_t digits = 8;
        run.options.name = name + "_" + semantic_hash(run.prepared.request.declared).substr(std::string_view("sha256:").size(), digits);
        taken.insert(run.options.name);
    }

    void begin(SharedTask &part) {
        try {
            TuneRun &run = *part.run;
            part.campaign =
                std::make_unique<Campaign>(run.task, run.options.campaign, *run.model, records_, [this, &run](const Progress &p) {
                    say_what_stopping_does(interruption_, p, artifact_place(run).string(), options_.records, options_.kernel.quiet);
                });
            part.recorded = static_cast<size_t>(part.campaign->progress().recorded);
        } catch (const UserError &error) {
            if (error.id().starts_with("records.")) throw;
            part.is_stopped = error.id() == "tune.stopped";
            part.refusal = part.is_stopped ? error.message() : error.what();
        }
    }

    size_t trials() const {
        size_t all = 0;
        for (const SharedTask &part : parts_)
            if (part.campaign) all += static_cast<size_t>(part.campaign->progress().trials);
        return all;
    }
};

// How much faster the kernel is than the base from now on: where an existing artifact is kept, nobody knows.
double speed_of(const SharedTask &part) { return part.result.improved && part.written.kept.empty() ? part.result.measurement.ratio : 1; }

// What all calls took with the schedules to beat, and what they take, each as often as its weight says.
struct Total {
    double before = 0, after = 0;
};
Total total_of(const std::vector<SharedTask> &parts) {
    Total total;
    for (const SharedTask &part : parts) {
        const CampaignResult &r = part.result;
        total.before += part.entry.weight * r.base_seconds;
        total.after += part.entry.weight * r.base_seconds / speed_of(part);
    }
    return total;
}

// 0 where nothing was measured.
double weighted_ratio(const std::vector<SharedTask> &parts) {
    const Total total = total_of(parts);
    return total.after > 0 ? total.before / total.after : 0;
}

// The speed-up of the whole, where what is not in its callees stays as it is; 0 where that is not known.
double predicted_speed(const SharedSearch &search) {
    const auto &whole = search.whole();
    const Total total = total_of(search.parts());
    if (!whole || whole->seconds <= 0 || total.after <= 0) return 0;
    const double rest = std::max(0.0, whole->seconds - total.before);
    return (rest + total.before) / (rest + total.after);
}

// The artifact that a call of the callee may take, where there is one.
std::optional<std::string> schedule_of(const SharedTask &part) {
    if (!part.run || (part.written.file.empty() && part.written.kept.empty())) return std::nullopt;
    return artifact_name(part.run->options, part.run->prepared, {part.run->extents});
}

std::string text_of(const Whole &whole, const SharedSearch &search) {
    const double callees = total_of(search.parts()).before;
    std::string text = whole.seconds > 0 ? fmt::format(
                                               "{}: {}, of which its callees by themselves take {:.1f}%; predicted at {:.3f} of "
                                               "its speed with what was found\n",
                                               whole.name, time_text(whole.seconds), callees / whole.seconds * 100, predicted_speed(search))
                                         : fmt::format("{} as a whole was not timed: {}\n", whole.name, whole.refusal);
    std::string uses;
    for (const SharedTask &part : search.parts())
        if (const auto schedule = schedule_of(part))
            for (const std::string &scope : part.entry.scopes) uses += fmt::format("  \"{}\": {{\"use\": \"{}\"}}\n", scope, *schedule);
    if (uses.empty()) return text;
    return text + "a call takes what was found where the schedule of its caller says nothing of it, or the program's names it:\n" + uses;
}

std::string outcome_of(const SharedTask &part) {
    const Written &written = part.written;
    if (written.failure) return "none: " + written.failure->message();
    if (!written.kept.empty()) return written.kept.substr(0, written.kept.size() - 1);
    if (!written.file.empty()) return written.file.string();
    const std::filesystem::path place = artifact_place(*part.run);
    std::error_code none;
    return (std::filesystem::exists(place, none) ? place.string() + " stands" : "none") +
           ": nothing that is surely faster than the base was found";
}

std::string report_of(const SharedSearch &search) {
    const std::vector<SharedTask> &parts = search.parts();
    size_t width = 4, trials = 0;
    for (const SharedTask &part : parts) width = std::max(width, part.name().size()), trials += part.result.trials.size();
    const auto &whole = search.whole();
    const bool has_shares = whole && whole->seconds > 0;
    std::string text = fmt::format("{:{}}  {:>6}  {}{:>6}  {:>10}  {:>10}  {:>6}  {}\n", "task", width, whole ? "runs" : "weight",
                                   has_shares ? " share  " : "", "trials", "base", "tuned", "speed", "artifact");
    for (const SharedTask &part : parts) {
        const CampaignResult &r = part.result;
        if (!part.refusal.empty()) {
            text += fmt::format("{:{}}  {}\n", part.name(), width, part.refusal);
            continue;
        }
        const std::string share = has_shares ? fmt::format("{:>5.1f}%  ", part.entry.weight * r.base_seconds / whole->seconds * 100) : "";
        text += fmt::format("{:{}}  {:>6g}  {}{:>6}  {:>10}  {:>10}  {:>6.3f}  {}\n", part.name(), width, part.entry.weight, share,
                            r.trials.size(), time_text(r.base_seconds), time_text(r.base_seconds / speed_of(part)), speed_of(part),
                            outcome_of(part));
    }
    if (weighted_ratio(parts) <= 0) return text + "no task was tuned\n";
    if (search.ends_before()) text += stopped_text(trials, search.budget()) + "\n";
    text += fmt::format("{} trials in {:.0f} s; all of them, by weight, at {:.3f} of the speed of their bases\n", trials, search.since(),
                        weighted_ratio(parts));
    return whole ? text + text_of(*whole, search) : text;
}

ordered_json json_of(const Whole &whole, const SharedSearch &search) {
    ordered_json document = {{"name", whole.name}, {"seconds", nullptr}, {"predicted_speed", nullptr}};
    if (whole.seconds > 0) document["seconds"] = whole.seconds;
    if (const double speed = predicted_speed(search); speed > 0) document["predicted_speed"] = speed;
    if (!whole.refusal.empty()) document["message"] = whole.refusal;
    return document;
}

std::string shared_json(const SharedSearch &search) {
    const std::vector<SharedTask> &parts = search.parts();
    const auto &whole = search.whole();
    ordered_json tasks = ordered_json::array();
    for (const SharedTask &part : parts) {
        const CampaignResult &r = part.result;
        ordered_json one = {{"task", part.name()}, {"weight", part.entry.weight}};
        if (whole) one["scopes"] = part.entry.scopes, one["share"] = nullptr, one["schedule"] = nullptr;
        if (whole && whole->seconds > 0) one["share"] = part.entry.weight * r.base_seconds / whole->seconds;
        if (const auto schedule = schedule_of(part); whole && schedule) one["schedule"] = *schedule;
        one["trials"] = r.trials.size(), one["improved"] = r.improved;
        one.update(times_json(r));
        one["artifact"] = part.written.file.string(), one["kept"] = !part.written.kept.empty();
        if (!part.refusal.empty()) one["message"] = part.refusal;
        else if (part.written.failure) one["message"] = part.written.failure->message();
        tasks.push_back(one);
    }
    ordered_json all = {{"format", "tessera-tune-many"}, {"version", 1},    {"stopped", search.ends_before()}, {"tasks", tasks},
                        {"seconds", search.since()},     {"speed", nullptr}};
    if (const double speed = weighted_ratio(parts); speed > 0) all["speed"] = speed;
    if (whole) all["program"] = json_of(*whole, search);
    return document_text(all);
}

}  // namespace

int tune_many(const Registry &registry, const TuneOptions &options, const CampaignFile &campaign,
              const std::optional<TunedProgram> &program) {
    SharedSearch shared(registry, options, campaign);
    if (program) shared.time_whole(*program);
    shared.search();
    shared.finish();
    std::cout << (options.json ? shared_json(shared) : report_of(shared)) << std::flush;
    for (const SharedTask &part : shared.parts()) part.written.check();
    for (const SharedTask &part : shared.parts())
        if (!part.refusal.empty() && !part.is_stopped) return exit_check_failed;
    return exit_ok;
}

}  // namespace tessera

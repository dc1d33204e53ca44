#include "generators/tune.h"

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "algorithms/error.h"
#include "algorithms/hash.h"
#include "autotune/campaign.h"
#include "autotune/tuned_schedule.h"
#include "bench/machine.h"
#include "compiler/emit_library.h"
#include "generators/loaded_kernel.h"
#include "generators/manifest.h"
#include "generators/prepare.h"
#include "schedules/canonical.h"
#include "schedules/explain.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

std::atomic<bool> interrupted{false};

// A first Ctrl-C ends the search in order; another one ends the program.
void interrupt(int) {
    interrupted = true;
    signal(SIGINT, SIG_DFL);
}

struct TuneOptions {
    KernelOptions kernel;
    std::vector<std::string> extents, space, runners;
    CampaignOptions campaign;
    std::string records = "tune.db", out = "schedules", name, model;
    int threads = 1;
    bool json = false, dry_run = false;
};

// "M512_N768_K3072"
std::string shape_name(const Algorithm &algorithm, const DimExtents &extents) {
    std::string name;
    for (const Dim &d : algorithm.dims)
        if (auto e = extents.find(d.name); e != extents.end()) name += fmt::format("{}{}{}", name.empty() ? "" : "_", d.name, e->second);
    return name.empty() ? "any" : name;
}

std::string time_text(double seconds) {
    return seconds < 1e-6 ? fmt::format("{:.1f} ns", seconds * 1e9) : seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : seconds < 1 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::string verdicts_text(const std::map<Verdict, int> &verdicts) {
    std::string text;
    for (const auto &[verdict, count] : verdicts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name_of(verdict));
    return text;
}

// How near the roofline, where the rates of the machine were measured; assumed ones would promise too much or too little.
std::string bound_text(double bound, double seconds, bool calibrated) { return calibrated && seconds > 0 ? fmt::format(" ({:.0f} % of the bound)", 100 * bound / seconds) : ""; }

// On a terminal one line that changes; elsewhere a line where the best changes, and for every sixteenth trial.
class ProgressLine {
public:
    ProgressLine(bool quiet, bool calibrated) : terminal_(isatty(2) == 1), quiet_(quiet), calibrated_(calibrated) {}
    void show(const Progress &p) {
        if (quiet_) return;
        const std::string text = fmt::format("{:4} of {} trials  best {:.3f} of the base's speed, {}{}  {}  {:.0f} s", p.trials, p.budget, p.best_ratio, time_text(p.best_seconds),
                                             bound_text(p.bound_seconds, p.best_seconds, calibrated_), verdicts_text(p.verdicts), p.elapsed_s);
        if (terminal_) std::cerr << "\r\033[K" << text << std::flush;
        else if (p.best_ratio > best_ * 1.005 || p.trials / 16 != trials_ / 16) std::cerr << text << "\n";
        else return;
        best_ = p.best_ratio, trials_ = p.trials;
    }
    ~ProgressLine() {
        if (terminal_ && !quiet_ && trials_ > 0) std::cerr << "\n";
    }

private:
    bool terminal_, quiet_, calibrated_;
    double best_ = 0;
    int trials_ = 0;
};

// The file of the model that a campaign begins with; nothing for 'none', 'roofline', or where none ships for the target.
std::optional<std::filesystem::path> model_file(const std::string &choice, const Target &target) {
    if (choice == "none" || choice == "roofline") return std::nullopt;
    if (!choice.empty()) return choice;
    for (const std::string &name : nearest_targets(target))
        if (auto file = shipped_model(name)) return file;
    return std::nullopt;
}

std::unique_ptr<CostModel> model_for(const std::string &choice, const Target &target) {
    if (choice == "roofline") return roofline_model();
    std::unique_ptr<CostModel> model = boosted_model();
    if (const auto file = model_file(choice, target)) model->load(*file);
    return model;
}

// All that makes it another kernel than its algorithm: shape, options, threads.
std::string variety_of(const PreparedKernel &p, const DimExtents &extents, int threads) {
    DimExtents shape = extents;
    shape.insert(p.fixed.begin(), p.fixed.end());
    std::string name = shape_name(p.declared, shape);
    for (const auto &[option, value] : p.options) name += fmt::format("_{}{}", option, value);
    if (!extents.empty() && !p.fixed.empty()) name += "_partly_fixed";
    else if (!extents.empty()) name += "_dynamic";
    return threads > 1 ? fmt::format("{}_threads{}", name, threads) : name;
}

// The content of the model that a campaign begins with.
std::string model_hash(const std::string &choice, const Target &target) {
    const auto file = model_file(choice, target);
    return file ? sha256(read_file(*file)) : choice == "roofline" ? choice : "none";
}

// What tuning holds in memory at once: inputs, results and what is expected of them.
void check_size(const PreparedKernel &p, const DimExtents &extents) {
    constexpr double most = 2e9;
    const DimExtents all = all_extents(p.bound, extents);
    double bytes = 0;
    for (const Tensor &t : p.bound.tensors) {
        double one = size_of(t.dtype);
        for (const std::string &d : t.dims)
            if (auto e = all.find(d); e != all.end()) one *= static_cast<double>(e->second);
        bytes += one;
    }
    if (bytes > most) throw UserError("tune.size", fmt::format("{}: expected at most {:g} GB of arguments to tune with, got {:.1f}. Tune a smaller shape of the same proportions.", p.declared.name, most / 1e9, bytes / 1e9));
}

CampaignTask task_of(const PreparedKernel &p, const TuneOptions &options, const DimExtents &extents) {
    CampaignTask task;
    task.space = {p.bound, p.target, extents, options.threads, parse_restrictions(options.space), {}};
    task.name = fmt::format("{}/{}/{} {}", p.declared.name, p.declared.numerics.name, p.target.name, variety_of(p, extents, options.threads));
    if (p.schedule) task.base = knobs_for(p, extents);
    const Machine machine = this_machine();
    task.identity = {{"task", task.name},
                     {"algorithm", p.declared.name},
                     {"semantic", semantic_hash(p.bound)},
                     {"surface", surface_hash(p.bound)},
                     {"numerics", p.declared.numerics.name},
                     {"options", p.options},
                     {"fixed", p.fixed},
                     {"extents", extents},
                     {"target", p.target.name},
                     {"threads", options.threads},
                     {"space", parse_restrictions(options.space)},
                     {"model", model_hash(options.model, p.target)},
                     {"features", feature_hash()},
                     {"machine", {{"processor", machine.processor}, {"architecture", machine.architecture}, {"cores", machine.cores}}},
                     {"runners", options.runners},
                     {"versions", {{"tessera", tessera_version()}, {"halide", halide_version()}}}};
    return task;
}

// What may be asked, and how large the space is (Knuth, "Estimating the efficiency of backtrack programs", 1975).
int show_space(const CampaignTask &task) {
    RandomNumbers random(1);
    std::map<std::string, std::map<std::string, int>> decisions;
    std::vector<std::string> order;
    double size = 0;
    constexpr int walks = 400;
    for (int i = 0; i < walks; i++) {
        Trace trace;
        std::vector<Decision> asked;
        try {
            realize(task.space, recording([&](const Decision &d) { return static_cast<size_t>(random.below(static_cast<int64_t>(d.answers.size()))); }, trace, &asked));
        } catch (const UserError &) {  // a restriction that these answers do not go with
            continue;
        }
        double ways = 1;
        for (const Decision &d : asked) {
            ways *= static_cast<double>(d.answers.size());
            auto [known, fresh] = decisions.try_emplace(d.name());
            if (fresh) order.push_back(d.name());
            for (const Answer &a : d.answers) known->second[a.value]++;
        }
        size += ways / walks;
    }
    for (const std::string &name : order) {
        std::vector<std::string> values;
        for (const auto &[value, count] : decisions[name]) values.push_back(value);
        std::sort(values.begin(), values.end(), [](const std::string &a, const std::string &b) { return std::make_pair(std::atoll(a.c_str()), a) < std::make_pair(std::atoll(b.c_str()), b); });
        std::cout << fmt::format("{:40} {}\n", name, join(values, " "));
    }
    std::cout << fmt::format("{} decisions; about 10^{:.0f} schedules\n", order.size(), std::log10(size));
    return exit_ok;
}

void check_restrictions(const CampaignTask &task) {
    RandomNumbers random(1);
    std::map<std::string, bool> met;
    std::vector<std::string> names;
    for (int i = 0; i < 200; i++) {
        Trace trace;
        std::vector<Decision> asked;
        SearchSpace open = task.space;
        open.restrictions.clear();
        realize(open, recording(sampling(random), trace, &asked));
        for (const Decision &d : asked) {
            if (std::find(names.begin(), names.end(), d.name()) == names.end()) names.push_back(d.name());
            for (const std::string &name : {d.name(), d.knob})
                if (auto r = task.space.restrictions.find(name); r != task.space.restrictions.end())
                    for (const Answer &a : d.answers) met[name] |= std::find(r->second.begin(), r->second.end(), a.value) != r->second.end();
        }
    }
    for (const auto &[name, values] : task.space.restrictions)
        if (!met[name])
            throw UserError("tune.space", "--space '" + name + "=" + join(values, ",") + "': no decision has that answer; the decisions are " + join(names) + "." + did_you_mean(name, names) + " --dry-run lists their answers.");
}

ordered_json measured_block(const CampaignTask &task, const CampaignResult &r, const PreparedKernel &p) {
    ordered_json worth = ordered_json::array();
    for (const Worth &w : r.worth) {
        ordered_json one = {{"stage", w.stage}, {"knob", w.knob}};
        if (w.gain > 0) one["gain"] = std::round(w.gain * 1000) / 1000;
        else one["gain"] = nullptr;
        worth.push_back(one);
    }
    const ordered_json &m = task.identity["machine"];
    auto rounded = [](double x) { return std::round(x * 1e4) / 1e4; };
    return {{"resolved", r.best.resolved},
            {"machine", m["processor"]},
            {"options", p.options},
            {"fixed", p.fixed},
            {"extents", task.space.extents},
            {"threads", task.space.threads},
            {"seconds", r.measurement.seconds},
            {"over", {{"schedule", p.schedule ? p.schedule->name() : "the space's most likely"}, {"hash", p.schedule ? p.schedule->hash() : ""}, {"seconds", r.base_seconds}, {"speed", {rounded(r.measurement.lower), rounded(r.measurement.ratio), rounded(r.measurement.upper)}}}},
            {"trials", r.trials.size()},
            {"versions", task.identity["versions"]},
            {"worth", worth}};
}

std::string artifact_name(const TuneOptions &options, const CampaignTask &task, const PreparedKernel &p) {
    return options.name.empty() ? fmt::format("{}/{}/{}/{}", p.declared.name, p.declared.numerics.name, p.target.name, variety_of(p, task.space.extents, task.space.threads)) : options.name;
}

int report(const TuneOptions &options, const CampaignTask &task, const CampaignResult &r, const PreparedKernel &p, const Library &library) {
    const double bound = r.base.features.bound;
    std::string artifact, changes;
    if (r.improved) {
        const std::string name = artifact_name(options, task, p);
        // A parent must be found by its name wherever the artifact is used.
        const std::vector<std::string> known = library.names();
        const bool named = p.schedule && std::find(known.begin(), known.end(), p.schedule->name()) != known.end() && library.find(p.schedule->name()) == *p.schedule;
        Schedule tuned = tuned_schedule(name, r.best.stages, named ? p.schedule : std::nullopt, library, p.resolved.requires_features.empty() ? p.target.features : p.resolved.requires_features);
        tuned = tuned.for_algorithm(p.declared.name, surface_hash(p.declared)).with_measured(measured_block(task, r, p));
        const std::filesystem::path place = std::filesystem::path(options.out) / (name + ".json");
        const OutputFolder out(place.parent_path());
        out.write(place.filename().string(), canonical_text(tuned.document()));
        out.publish(place.filename().string());
        artifact = place.string();
        if (p.schedule) changes = diff(*p.schedule, tuned, library);
    }
    if (options.json) {
        ordered_json trials = ordered_json::array();
        for (const Trial &t : r.trials)
            trials.push_back({{"number", t.number}, {"origin", t.origin}, {"verdict", name_of(t.measurement.verdict)}, {"ratio", t.measurement.ratio}, {"score", t.score}, {"message", t.measurement.message}});
        const ordered_json whole = {{"format", "tessera-tune"}, {"version", 1}, {"task", task.name}, {"improved", r.improved}, {"artifact", artifact}, {"bound_s", bound},
                                    {"base_s", r.base_seconds}, {"best_s", r.measurement.seconds}, {"ratio", {r.measurement.lower, r.measurement.ratio, r.measurement.upper}},
                                    {"search_s", r.search_s}, {"measure_s", r.measure_s}, {"made", r.made}, {"refused", r.refused}, {"trials", trials}};
        std::cout << whole.dump(2) << "\n";
        return exit_ok;
    }
    std::cout << fmt::format("{}: {} trials in {:.0f} s ({}); {:.1f} s of them for {} schedules made and judged\n", task.name, r.trials.size(), r.progress.elapsed_s, verdicts_text(r.progress.verdicts), r.search_s, r.made);
    std::cout << fmt::format("  base   {:>12}{}  {}\n", time_text(r.base_seconds), bound_text(bound, r.base_seconds, p.target.measured.has_value()), p.schedule ? p.schedule->name() : "the space's most likely schedule");
    if (!r.improved) {
        std::cout << "  nothing that is surely faster was found; no artifact is written\n";
        return exit_ok;
    }
    std::cout << fmt::format("  tuned  {:>12}{}  {:.3f} of the base's speed (95 %: {:.3f} to {:.3f})\n", time_text(r.base_seconds / r.measurement.ratio),
                             bound_text(bound, r.base_seconds / r.measurement.ratio, p.target.measured.has_value()), r.measurement.ratio, r.measurement.lower, r.measurement.upper);
    if (!changes.empty()) std::cout << "what differs from the base:\n" << changes;
    if (!r.worth.empty()) std::cout << "what each change is worth (the tuned speed over the speed without it):\n";
    for (const Worth &w : r.worth) std::cout << fmt::format("  {:40} {}\n", w.stage + "." + w.knob, w.gain > 0 ? fmt::format("{:.3f}", w.gain) : "the others need it");
    std::cout << "wrote " << artifact << "\n";
    return exit_ok;
}

int tune(const Registry &registry, TuneOptions &options) {
    PreparedKernel p = prepare_schedule(registry, options.kernel);
    const DimExtents extents = parse_shape(options.extents);
    check_size(p, extents);
    if (options.runners.empty()) check_runs_here(p.target);
    else options.campaign.measure.runners = options.runners;
    const std::unique_ptr<CostModel> model = model_for(options.model, p.target);
    const CampaignTask task = task_of(p, options, extents);
    check_restrictions(task);
    if (options.dry_run) return show_space(task);
    const Schedule named(artifact_name(options, task, p));  // a wrong name, or a folder that cannot be, before anything is measured
    { const OutputFolder out((std::filesystem::path(options.out) / named.name()).parent_path()); }
    const Library library = registry.library(schedule_folders(options.kernel.schedule_dirs));
    Records records(options.records);
    interrupted = false;
    options.campaign.stop = options.campaign.measure.stop = &interrupted;
    auto before = signal(SIGINT, interrupt);
    CampaignResult result;
    {
        ProgressLine line(options.kernel.quiet, p.target.measured.has_value());
        result = run_campaign(task, options.campaign, *model, records, [&](const Progress &progress) { line.show(progress); });
    }
    signal(SIGINT, before);
    return report(options, task, result, p, library);
}

}  // namespace

Command tune_command(CLI::App &app, const Registry &registry) {
    auto options = std::make_shared<TuneOptions>();
    CampaignOptions &c = options->campaign;
    CLI::App *line = app.add_subcommand("tune", "Search a faster schedule for one shape on this machine, and write it as an artifact");
    add_algorithm_options(*line, options->kernel);
    add_schedule_options(*line, options->kernel);
    line->add_option("--extents", options->extents, "Extents to tune for of the dims that the kernel leaves dynamic")->type_name("DIM=EXTENT");
    line->add_option("--threads", options->threads, "Threads that the kernel will run on")->check(CLI::Range(1, 4096))->capture_default_str();
    line->add_option("--trials", c.trials, "Most candidates to measure")->check(CLI::PositiveNumber)->capture_default_str();
    line->add_option("--budget-s", c.seconds, "Most seconds to search")->check(CLI::PositiveNumber);
    line->add_option("--seed", c.search.seed, "Of proposals and data")->capture_default_str();
    line->add_option("--batch", c.batch, "Candidates that are proposed at a time")->check(CLI::Range(1, 1024))->capture_default_str();
    line->add_option("--population", c.search.population, "Candidates that are judged for each batch")->check(CLI::Range(8, 100000))->capture_default_str();
    line->add_option("--space", options->space, "Allow only these answers to a decision of the space")->type_name("DECISION=VALUE,…");
    line->add_option("--model", options->model, "A cost model's file, 'none' to begin without one, 'roofline' to learn nothing; default: the shipped one of the target")->type_name("FILE");
    line->add_option("--records", options->records, "The database of measurements")->capture_default_str()->type_name("FILE");
    line->add_flag("--resume", c.resume, "Go on with the last campaign of the same task, options and seed");
    line->add_option("--out", options->out, "The folder of schedules to write to")->capture_default_str()->type_name("DIR");
    line->add_option("--name", options->name, "The artifact's name; default: <algorithm>/<numerics>/<target>/<shape>");
    line->add_option("--runner", options->runners, "A command that runs the program whose path follows it, where the kernel shall run; more than one measure side by side")->expected(1)->take_all()->type_name("COMMAND");
    line->add_option("--cc", c.measure.cc, "The C compiler for that machine, with options")->capture_default_str();
    line->add_option("--jobs", c.measure.jobs, "Candidates compiled at a time")->check(CLI::Range(1, 1024))->capture_default_str();
    line->add_option("--measure-s", c.measure.seconds, "Most seconds for timing one candidate")->check(CLI::PositiveNumber)->capture_default_str();
    line->add_option("--compile-limit-s", c.measure.compile.seconds, "Most seconds that compiling one may take")->check(CLI::PositiveNumber)->capture_default_str();
    line->add_option("--run-limit-s", c.measure.run_limit_s, "Most seconds that running one may take")->check(CLI::PositiveNumber)->capture_default_str();
    line->add_flag("!--unseeded", c.plant, "Compare with the base schedule, but do not begin the search from it");
    line->add_flag("--dry-run", options->dry_run, "Only list the decisions of the space");
    line->add_flag("--json", options->json, "For programs");
    c.measure.compile.seconds = 20;
    c.measure.jobs = std::max(1, this_machine().threads);
    return {line, [=, &registry] { return tune(registry, *options); }};
}

}  // namespace tessera

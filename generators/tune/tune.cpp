#include "generators/tune/tune.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "autotune/search/model_choice.h"
#include "bench/measure/machine.h"
#include "generators/commands/kernel_line.h"
#include "generators/tune/campaign_file.h"
#include "generators/tune/tune_callees.h"
#include "generators/tune/tune_campaign.h"
#include "generators/tune/tune_outcome.h"
#include "generators/tune/tune_progress.h"
#include "generators/tune/tune_shapes.h"
#include "generators/tune/tune_space.h"
#include "support/processes/interruption.h"
#include "support/text/error.h"

namespace tessera {

namespace {

struct Asked {
    bool ablates = true;
    TuneOptions tune;
    std::string campaign;
    bool all = false, callees = false;
    std::set<std::string> given;  // options that the command line has

    bool has(const std::string &option) const { return given.count(option) > 0; }
    bool is_campaign() const { return all || !campaign.empty(); }
    // The option that says which kernels are tuned together; "" for one kernel.
    std::string together() const { return all ? "--all" : !campaign.empty() ? "--campaign" : callees ? "--callees" : ""; }
};

int tune_one(const Registry &registry, const TuneOptions &options) {
    const auto run = prepare_run(registry, options);
    if (options.dry_run) {
        show_space(run->task);
        return exit_ok;
    }
    check_output(*run);
    Interruption interruption;
    CampaignOptions &campaign = run->options.campaign;
    campaign.stop = campaign.measure.stop = interruption.asked(), campaign.measure.abandon = interruption.asked_again();
    campaign.measure.warn = warn;
    if (!options.kernel.quiet) campaign.note = note;
    CampaignResult result;
    try {
        if (options.deterministic) {
            result = choose_by_model(run->task, campaign, *run->model);
        } else {
            Records records(options.records);
            ProgressLine line(options.kernel.quiet, run->prepared.request.target.measured.has_value(), campaign.goal.metric);
            const auto show = [&](const Progress &progress) {
                line.show(progress);
                say_what_stopping_does(interruption, progress, artifact_place(*run).string(), options.records, options.kernel.quiet);
            };
            say_what_stopping_does(interruption, {}, "", options.records, options.kernel.quiet);
            result = run_campaign(run->task, campaign, *run->model, records, show);
        }
    } catch (const UserError &error) {
        if (error.id() != "tune.stopped") throw;
        std::cout << stopped_report(*run, error);
        return exit_ok;
    }
    const std::optional<Schedule> artifact = artifact_of(*run, result);
    const Written written = write_artifact(*run, result, artifact);
    std::cout << report_of(*run, result, artifact, written) << std::flush;
    if (!written.kept.empty() && options.json) warn(written.kept);
    if (!options.page.empty()) write_page(*run, result, artifact, written.file);
    written.check();
    return exit_ok;
}

void check_deterministic(const Asked &asked) {
    if (!asked.tune.deterministic) return;
    for (const std::string name : {"--budget-s", "--resume", "--records", "--runner", "--cc", "--jobs", "--measure-s", "--compile-limit-s",
                                   "--run-limit-s", "--cold-caches"})
        if (asked.has(name))
            throw UserError("command.arguments", "tune: " + name +
                                                     " is for a search that measures; --deterministic measures nothing, and its budget is "
                                                     "--trials. Leave out the one or the other.");
}

void check_dry_run(const Asked &asked) {
    if (!asked.tune.dry_run) return;
    if (asked.tune.json) throw UserError("command.arguments", "tune: --dry-run lists the decisions as text only; leave out --json.");
    for (const std::string name : {"--resume", "--report"})
        if (asked.has(name))
            throw UserError("command.arguments",
                            "tune: " + name + " is for a search; --dry-run only lists the decisions. Leave out the one or the other.");
}

void check_algorithm(const Asked &asked) {
    if (asked.tune.kernel.algorithm.empty())
        throw UserError("command.arguments", "tune: expected an algorithm, --campaign or --all, got none; 'list' shows the algorithms.");
}

// What several kernels that are tuned together do not take.
void check_together(const Asked &asked) {
    const TuneOptions &options = asked.tune;
    const std::string together = asked.together();
    if (asked.all && !asked.campaign.empty())
        throw UserError("command.arguments", "tune: expected --all or --campaign, got both. Choose one.");
    if (asked.callees && asked.is_campaign())
        throw UserError("command.arguments", fmt::format("tune: expected --callees or {}, got both. Choose one.", together));
    if (options.campaign.goal.metric != Metric::latency && (!together.empty() || options.deterministic))
        throw UserError("command.arguments",
                        fmt::format("tune: --metric {} is for one kernel that is measured; leave out {}.",
                                    name_of(options.campaign.goal.metric), together.empty() ? "--deterministic" : together));
    if (together.empty()) return;
    std::vector<std::pair<bool, std::string>> all = {{!options.name.empty(), "--name"},
                                                     {!options.space.empty(), "--space"},
                                                     {!options.prepack.empty(), "--prepack"},
                                                     {options.dry_run, "--dry-run"},
                                                     {!options.page.empty(), "--report"},
                                                     {options.deterministic, "--deterministic"},
                                                     {!options.kernel.schedule.empty(), "--schedule"}};
    if (asked.callees) check_algorithm(asked);
    else
        all.insert(all.begin(), {{!options.kernel.algorithm.empty(), "an algorithm"},
                                 {!options.extents.empty(), "--extents"},
                                 {!options.kernel.shape.empty(), "--shape"},
                                 {asked.has("--target"), "--target"},
                                 {asked.has("--numerics"), "--numerics"},
                                 {asked.has("--option"), "--option"},
                                 {asked.has("--threads"), "--threads"}});
    if (!asked.callees)
        for (const std::string &option : transform_options()) all.emplace_back(asked.has(option), option);
    for (const auto &[given, name] : all)
        if (given)
            throw UserError("command.arguments",
                            fmt::format("tune: {} is for one kernel; the tasks of {} say what is tuned. Leave it out.", name, together));
}

int tune(const Registry &registry, const Asked &asked) {
    const TuneOptions &options = asked.tune;
    check_deterministic(asked);
    check_dry_run(asked);
    if (std::any_of(options.runners.begin(), options.runners.end(),
                    [](const std::string &r) { return r.find_first_not_of(" \t\n") == std::string::npos; }))
        throw UserError("command.arguments",
                        "tune: --runner '': expected a command that runs the program whose path follows it, got none. Name one, or leave "
                        "--runner out to run on this "
                        "machine.");
    for (const auto &[name, value] :
         {std::pair("--out", &options.out), std::pair("--name", &options.name), std::pair("--report", &options.page)})
        if (asked.has(name) && value->empty())
            throw UserError("command.arguments",
                            fmt::format("tune: {} '': expected a name, got none. Give one, or leave {} out.", name, name));
    if (asked.has("--least-speed") && is_speed(options.campaign.goal.metric))
        throw UserError("command.arguments",
                        "tune: --least-speed bounds the time where bytes are to be small; add --metric code-size or --metric workspace, or "
                        "leave it out.");
    if (options.campaign.measure.cold && options.campaign.goal.metric == Metric::throughput)
        throw UserError("command.arguments",
                        "tune: --cold-caches is for one caller; the callers of --metric throughput fill each other's caches all the time. "
                        "Leave out the one or the other.");
    check_together(asked);
    if (asked.together().empty()) {
        check_algorithm(asked);
        if (options_by_shape(options).size() == 1) return tune_one(registry, options);
        for (const auto &[given, name] :
             {std::pair(options.deterministic, "--deterministic"), std::pair(!options.page.empty(), "--report")})
            if (given)
                throw UserError("command.arguments",
                                std::string("tune: ") + name + " is for one shape; give each dim one extent, or leave it out.");
        return tune_shapes(registry, options);
    }
    CampaignFile campaign;
    std::optional<TunedProgram> program;
    if (asked.callees) {
        campaign = campaign_of_callees(registry, options), program = program_of(registry, options);
    } else if (asked.all) {
        // Tessera's own artifacts are in every library; a generator need not have their algorithms.
        campaign.tasks = tasks_of(library_with_artifacts(registry, options), [&](const std::string &name) { return registry.knows(name); });
        campaign.skips_foreign = true;
    } else {
        campaign = read_campaign(asked.campaign);
    }
    if (asked.has("--trials")) campaign.trials = options.campaign.trials;
    if (asked.has("--budget-s")) campaign.seconds = options.campaign.seconds;
    return program ? tune_many(registry, options, campaign, program) : tune_campaign(registry, options, campaign);
}

}  // namespace

Command tune_command(ProgramLine &program, const Registry &registry) {
    auto asked = std::make_shared<Asked>();
    TuneOptions *options = &asked->tune;
    CampaignOptions &c = options->campaign;
    c.measure.compile.seconds = 20;
    c.measure.jobs = std::max(1, this_machine().threads);
    const CommandLine line =
        program.command("tune", "Search for a faster schedule for one shape on this machine, and write it as an artifact");
    add_algorithm_options(line, options->kernel);
    line.added("algorithm").required(false);
    line.added("--shape").means(
        "Extents to fix, such as N=768 K=3072. A dim with several, M=1 M=64, is left dynamic: the artifact "
        "has a variant for each of these shapes, whose i-th extents go together");
    line.option("--campaign", asked->campaign, "Tune the kernels that this file lists, with one budget (tessera-campaign.schema.json)")
        .takes("FILE");
    line.flag("--all", asked->all, "Tune again, with one budget, all that the artifacts in the schedule folders were tuned for");
    line.flag("--callees", asked->callees,
              "Tune each algorithm that a program calls, at its shape, with one budget, and write an artifact for each");
    add_schedule_options(line, options->kernel);
    line.added("--schedule")
        .means(
            "The schedule to beat and to begin with, by name or file (*.json), or 'none' for the space's most likely one (plain loops "
            "where those are better); default: what 'generate' takes, but nothing that was tuned for a shape");
    line.option("--extents", options->extents, "Extents to tune for of the dims that the kernel leaves dynamic").takes("DIM=EXTENT");
    add_input_options(line, options->inputs);
    line.option("--threads", options->threads,
                "Threads that the kernel will run on; for --metric throughput, that will call it at one time")
        .in_range(1, 4096)
        .shows_default();
    line.option("--trials", c.trials, "Most candidates to measure, the schedule to beat among them")
        .integer_in(1, max_trials)
        .shows_default("64, or as many as --budget-s allows");
    line.seconds("--budget-s", c.seconds, "Most seconds to search").shows_default("no limit");
    line.option("--seed", c.search.seed, "Random seed for candidates and test data").integer_in(0, INT64_MAX).shows_default();
    line.option("--batch", c.batch, "Candidates proposed at a time").in_range(1, 1024).shows_default();
    line.option("--population", c.search.population,
                "Candidates that the cost model scores for each batch; six times as many for the first")
        .in_range(8, 100000)
        .shows_default();
    line.option("--exploration", c.search.exploration,
                "Share of each batch that is samples of the space, whatever their score; 1 is random search")
        .number_in(0, 1)
        .shows_default();
    line.option("--space", options->space, "Allow only these answers to a decision of the space").takes("DECISION=VALUE,…");
    line.option("--prepack", options->prepack,
                "Operands that stay as they are, such as weights, which the schedule may take packed: the caller packs them once")
        .separated_by(',')
        .takes("OPERAND");
    std::string models =
        "A cost model's file, 'none' to begin without one, 'roofline' to learn nothing; default: the shipped one of the target";
    for (const auto &model : registry.cost_models()) models += "; " + model.name + ": " + model.summary;
    line.option("--model", options->model, models).takes("FILE");
    line.option("--records", options->records, "The database of measurements").shows_default().takes("FILE");
    line.flag("--resume", c.resume, "Continue the last campaign of the same task, options and seed, with all its trials");
    line.option("--out", options->out, "The folder of schedules to write to").shows_default().takes("DIR");
    line.option("--name", options->name, "The artifact's name; default: <algorithm>/<numerics>/<target>/<shape>");
    line.option("--runner", options->runners,
                "A command that runs the program whose path follows it, where the kernel shall run; more than one measure side by side")
        .one_value_each()
        .takes("COMMAND");
    line.option(
            "--cc", c.measure.cc,
            "The C compiler for that machine, with options. It makes the program that measures; on this kind of processor none is needed")
        .shows_default("none; cc for GPUs and other processors");
    line.option("--jobs", c.measure.jobs, "Candidates compiled at a time").in_range(1, 1024).shows_default();
    line.seconds("--measure-s", c.measure.seconds, "Most seconds for timing one candidate");
    line.seconds("--compile-limit-s", c.measure.compile.seconds, "Most seconds that compiling one may take");
    line.seconds("--run-limit-s", c.measure.run_limit_s, "Most seconds that running one may take");
    line.flag("--cold-caches", c.measure.cold,
              "Time calls that find nothing of their data in the caches, as when other work runs between them");
    line.flag("!--no-ablation", asked->ablates,
              "Do not measure what each change of the winner is worth, which takes up to 10 measurements");
    line.flag("!--unseeded", c.seeded, "Compare with the base schedule, but do not begin the search from it");
    line.choice("--metric", c.goal.metric,
                {name_of(Metric::latency), name_of(Metric::throughput), name_of(Metric::code_size), name_of(Metric::workspace)},
                "Metric to minimise: latency, throughput (the time of --threads callers at once), code-size or workspace. The last two "
                "are bytes, and keep the speed of --least-speed")
        .shows_default("latency")
        .takes("latency|throughput|code-size|workspace");
    line.option("--least-speed", c.goal.min_speed, "When minimising bytes: smallest acceptable speed, as a fraction of the baseline's")
        .number_in(0.01, 10)
        .shows_default();
    line.flag("--keep-bits", c.search.keep_bits,
              "Take only schedules whose results have the bits of the base's: its reduction trees (show --what bits)");
    line.flag("--deterministic", options->deterministic,
              "Choose among --trials candidates by the cost model alone: nothing is measured, no artifact is a seed, and one --seed "
              "gives one artifact");
    line.flag("--dry-run", options->dry_run, "List the decisions of the search space, and stop");
    line.option("--report", options->page, "A page of HTML to write: the search, predictions, the roofline, the winner").takes("FILE");
    line.flag("--json", options->json, "Print JSON, for programs");
    return {line, [=, &registry] {
                asked->given = line.given();
                if (asked->has("--budget-s") && !asked->has("--trials")) asked->tune.campaign.trials = max_trials;
                if (!asked->ablates) asked->tune.campaign.ablations = 0;
                return tune(registry, *asked);
            }};
}

}  // namespace tessera

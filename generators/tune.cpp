#include "generators/tune.h"

#include <signal.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>

#include "bench/machine.h"
#include "bench/output_folder.h"
#include "generators/loaded_kernel.h"
#include "generators/tune_outcome.h"
#include "generators/tune_progress.h"
#include "generators/tune_space.h"

namespace tessera {

namespace {

std::atomic<bool> stop{false}, abandon{false};

// A first Ctrl-C ends the search in order, a second one also the confirming of its best; a third ends the program.
void interrupt(int signal_number) {
    if (abandon) signal(signal_number, SIG_DFL);
    if (stop) abandon = true;
    stop = true;
}

// SIGINT and SIGTERM stop the campaign while it lives.
class Stoppable {
public:
    Stoppable() : interrupt_(signal(SIGINT, interrupt)), terminate_(signal(SIGTERM, interrupt)) { stop = abandon = false; }
    ~Stoppable() { signal(SIGINT, interrupt_), signal(SIGTERM, terminate_); }
    Stoppable(const Stoppable &) = delete;
    Stoppable &operator=(const Stoppable &) = delete;

private:
    void (*interrupt_)(int), (*terminate_)(int);
};

int tune(const Registry &registry, TuneOptions &options) {
    options.kernel.family_only = true;  // what was tuned before is a seed, not a parent
    PreparedKernel p = prepare_schedule(registry, options.kernel);
    const DimExtents extents = parse_shape(options.extents, "--extents");
    check_size(p, extents);
    if (options.runners.empty()) check_runs_here(p.target);
    else options.campaign.measure.runners = options.runners;
    const std::unique_ptr<CostModel> model = model_for(options.model, p.target);
    const CampaignTask task = task_of(p, options, extents);
    check_restrictions(task);
    if (options.dry_run) {
        show_space(task);
        return exit_ok;
    }
    const Schedule named(artifact_name(options, p, extents));  // a wrong name, or a folder that cannot be, before anything is measured
    { const OutputFolder out((std::filesystem::path(options.out) / named.name()).parent_path()); }
    if (!options.page.empty()) {
        const OutputFolder out(std::filesystem::absolute(options.page).parent_path());
    }
    const Library library = registry.library(schedule_folders(options.kernel.schedule_dirs));
    Records records(options.records);
    options.campaign.stop = options.campaign.measure.stop = &stop, options.campaign.measure.abandon = &abandon;
    options.campaign.measure.warn = [](const std::string &text) { std::cerr << "warning: " << text << "\n"; };
    CampaignResult result;
    {
        const Stoppable stoppable;
        ProgressLine line(options.kernel.quiet, p.target.measured.has_value());
        result = run_campaign(task, options.campaign, *model, records, [&](const Progress &progress) { line.show(progress); });
    }
    const std::optional<Schedule> artifact = artifact_of(options, task, result, p, library);
    const std::filesystem::path file = artifact ? write_artifact(*artifact, options.out) : "";
    if (!options.page.empty()) write_page(options, task, result, p, library, artifact, file);
    std::cout << report_of(options, task, result, p, library, artifact, file);
    return exit_ok;
}

}  // namespace

Command tune_command(CLI::App &app, const Registry &registry) {
    auto options = std::make_shared<TuneOptions>();
    CampaignOptions &c = options->campaign;
    CLI::App *line = app.add_subcommand("tune", "Search a faster schedule for one shape on this machine, and write it as an artifact");
    add_algorithm_options(*line, options->kernel);
    add_schedule_options(*line, options->kernel);
    line->add_option("--extents", options->extents, "Extents to tune for of the dims that the kernel leaves dynamic")
        ->type_name("DIM=EXTENT");
    line->add_option("--threads", options->threads, "Threads that the kernel will run on")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    line->add_option("--trials", c.trials, "Most candidates to measure")->check(CLI::PositiveNumber)->capture_default_str();
    add_seconds(*line, "--budget-s", c.seconds, "Most seconds to search")->default_str("no limit");
    line->add_option("--seed", c.search.seed, "Of proposals and data")->capture_default_str();
    line->add_option("--batch", c.batch, "Candidates that are proposed at a time")->check(CLI::Range(1, 1024))->capture_default_str();
    line->add_option("--population", c.search.population, "Candidates that are judged for each batch")
        ->check(CLI::Range(8, 100000))
        ->capture_default_str();
    line->add_option("--space", options->space, "Allow only these answers to a decision of the space")->type_name("DECISION=VALUE,…");
    line->add_option(
            "--model", options->model,
            "A cost model's file, 'none' to begin without one, 'roofline' to learn nothing; default: the shipped one of the target")
        ->type_name("FILE");
    line->add_option("--records", options->records, "The database of measurements")->capture_default_str()->type_name("FILE");
    line->add_flag("--resume", c.resume, "Go on with the last campaign of the same task, options and seed");
    line->add_option("--out", options->out, "The folder of schedules to write to")->capture_default_str()->type_name("DIR");
    line->add_option("--name", options->name, "The artifact's name; default: <algorithm>/<numerics>/<target>/<shape>");
    line->add_option(
            "--runner", options->runners,
            "A command that runs the program whose path follows it, where the kernel shall run; more than one measure side by side")
        ->expected(1)
        ->take_all()
        ->type_name("COMMAND");
    line->add_option("--cc", c.measure.cc, "The C compiler for that machine, with options")->capture_default_str();
    line->add_option("--jobs", c.measure.jobs, "Candidates compiled at a time")->check(CLI::Range(1, 1024))->capture_default_str();
    add_seconds(*line, "--measure-s", c.measure.seconds, "Most seconds for timing one candidate");
    add_seconds(*line, "--compile-limit-s", c.measure.compile.seconds, "Most seconds that compiling one may take");
    add_seconds(*line, "--run-limit-s", c.measure.run_limit_s, "Most seconds that running one may take");
    line->add_flag("!--unseeded", c.plant, "Compare with the base schedule, but do not begin the search from it");
    line->add_flag("--dry-run", options->dry_run, "Only list the decisions of the space");
    line->add_option("--report", options->page, "A page of HTML to write: the search, predictions, the roofline, the winner")->type_name("FILE");
    line->add_flag("--json", options->json, "For programs");
    c.measure.compile.seconds = 20;
    c.measure.jobs = std::max(1, this_machine().threads);
    return {line, [=, &registry] { return tune(registry, *options); }};
}

}  // namespace tessera

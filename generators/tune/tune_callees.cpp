#include "generators/tune/tune_callees.h"

#include <fmt/format.h>

#include "generators/commands/callee_times.h"
#include "generators/tune/tune_progress.h"
#include "support/text/error.h"

namespace tessera {

static CampaignEntry entry_of(const CalledKernel &callee, const TuneOptions &options) {
    CampaignEntry entry;
    entry.task.algorithm = callee.algorithm->name, entry.task.numerics = callee.algorithm->numerics.name;
    entry.task.fixed = callee.fixed, entry.task.extents = callee.dynamic;
    entry.task.target = options.kernel.target, entry.task.threads = options.threads;
    entry.weight = static_cast<double>(callee.runs);
    entry.callee = callee.algorithm, entry.scopes = callee.scopes;
    return entry;
}

CampaignFile campaign_of_callees(const Registry &registry, const TuneOptions &options) {
    const Algorithm program = load_algorithm(registry, options.kernel);
    check_calls(program);
    const Callees callees = callees_of(program, parse_shape(options.kernel.shape), parse_shape(options.extents, "--extents"));
    CampaignFile campaign;
    for (const CalledKernel &callee : callees.leaves()) campaign.tasks.push_back(entry_of(callee, options));
    if (campaign.tasks.empty())
        throw UserError("callees.none", program.name +
                                            ": --callees: expected a call that runs, at extents that depend on no data; got none. "
                                            "Leave out --callees to tune the whole.");
    if (options.kernel.quiet) return campaign;
    for (const UncountedCall &u : callees.uncounted)
        note(fmt::format("{} at '{}' is left out: the extent of {} depends on data", u.callee, u.scope, u.dim));
    return campaign;
}

// For a program that has none: each callee has its family's, wherever it is called.
static Schedule schedule_of_callees(const KernelRequest &request, const Library &library, const Extents &dynamic) {
    Schedule schedule(request.declared.name);
    Chooser chooser(library, request.target, true);
    for (const CalledKernel &callee : callees_of(request.declared, request.fixed, dynamic).leaves())
        if (const Match match = chooser.applying(*callee.algorithm, callee.fixed); match.schedule)
            for (const std::string &scope : callee.scopes) schedule = schedule.stage(scope, StageKnobs().use(match.schedule->name()));
    return schedule;
}

// Families alone, as for each task: what was tuned before is a seed, not a base.
static PreparedKernel prepared_program(const Registry &registry, const TuneOptions &options) {
    KernelOptions kernel = options.kernel;
    kernel.family_only = true, kernel.derives = false;
    ScheduledKernel p = prepare_schedule(registry, kernel);
    const Library library = registry.library(registry.schedule_folders(kernel.schedule_dirs));
    const Extents dynamic = parse_shape(options.extents, "--extents");
    if (!p.choice.match.schedule)
        p.choice = choice_of(schedule_of_callees(p.request, library, dynamic), p.request, library, kernel.family_only);
    return compiled_as_chosen(std::move(p.request), std::move(p.choice));
}

TunedProgram program_of(const Registry &registry, const TuneOptions &options) {
    auto seconds = [&registry, options] {
        if (!options.runners.empty())
            throw UserError("tune.runner", "a --runner runs candidates; 'bench --callees' times a program on the machine that it is for.");
        constexpr double most_compiling_s = 300;  // a program is larger than any candidate
        Timing timing;
        timing.seconds = options.campaign.measure.seconds, timing.threads = options.threads, timing.cold = options.campaign.measure.cold;
        timing.compile.seconds = std::max(most_compiling_s, options.campaign.measure.compile.seconds);
        return time_of(prepared_program(registry, options), parse_shape(options.extents, "--extents"), timing).median_s;
    };
    return {load_algorithm(registry, options.kernel).name, seconds};
}

}  // namespace tessera

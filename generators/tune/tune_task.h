// What the command line asks to tune, as a campaign's task.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "autotune/search/campaign.h"
#include "generators/choose/model_choice.h"
#include "generators/commands/input_options.h"
#include "generators/kernel/prepare.h"

namespace tessera {

struct TuneOptions {
    KernelOptions kernel;
    std::vector<std::string> extents, space, runners;
    std::vector<std::string> prepack;  // operands that may be packed ahead of time
    InputOptions inputs;
    CampaignOptions campaign;
    std::string records = "tune.db", out = "schedules", name, model, page;
    int threads = 1;
    bool deterministic = false;  // chosen by the model alone, nothing is measured
    bool json = false, dry_run = false;
};

// The operands that may be packed ahead of time: those that --prepack names, that a restriction packs so, and that the schedule to beat
// takes so, sorted. UserError tune.prepack: one that is no input of the kernel.
std::vector<std::string> packed_ahead(const TuneOptions &options, const ScheduledKernel &prepared);

// The artifact's name: <algorithm>/<numerics>/<target>/<shape, options and threads>, followed by "prepacked" where operands may be packed
// ahead of time, by the metric where that is not time, and by "predicted" where nothing is measured; or the name that was asked for.
// `shapes` are the extents of the dynamic dims, once for each shape that it is tuned for.
std::string artifact_name(const TuneOptions &options, const ScheduledKernel &prepared, const std::vector<Extents> &shapes);

// UserError tune.size: more than tuning can hold in memory, once for each caller.
void check_size(const ScheduledKernel &prepared, const Extents &extents, int callers = 1);

CampaignTask task_of(const Registry &registry, const ScheduledKernel &prepared, const TuneOptions &options, const Extents &extents);

// The schedules of the folders that are given, and over them those of the folder that artifacts are written to.
Library library_with_artifacts(const Registry &registry, const TuneOptions &options);

// One kernel to tune. The task's warm starts are of the schedule folders, the one that artifacts are written to among them; there are
// none where one seed has to give one artifact.
struct TuneRun {
    const Registry *registry = nullptr;  // outlives it
    TuneOptions options;
    ScheduledKernel prepared;
    Extents extents;
    Library library;
    std::unique_ptr<CostModel> model;
    CampaignTask task;
};

// Everything that can be refused before anything is measured is. UserErrors of prepare_schedule, tune.extents of an empty dim,
// check_size, model_for, check_restrictions and, where nothing else runs the kernel, check_runs_here.
std::unique_ptr<TuneRun> prepare_run(const Registry &registry, const TuneOptions &options);
// The schedule to beat, where it was not made for this campaign; otherwise null.
const Schedule *named_base(const TuneRun &run);
// The schedule to beat, where it can be found by its name wherever the artifact is used: the artifact is a child of it.
std::optional<Schedule> parent_of(const TuneRun &run);
// What it resolves to with this schedule, as `check` will find it.
PreparedKernel prepared_with(const Schedule &tuned, const TuneRun &run);
// <out>/<artifact's name>.json. UserError schedule.name.
std::filesystem::path artifact_place(const TuneRun &run);
// Where --out is one of the folders in which every command looks for schedules.
bool is_own_folder(const Registry &registry, const std::string &out);
// What can be refused of names and places: UserError schedule.name, schedule.cycle, output.folder, output.write, and output.place where
// two outputs would be one file. Leaves no folder that was not there.
void check_output(const TuneRun &run);

}  // namespace tessera

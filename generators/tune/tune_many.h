// Several kernels tuned with one budget, which goes batch by batch where the next trials promise to save the most time
// (autotune/search/trial_allocation.h).
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "generators/tune/campaign_file.h"
#include "generators/tune/tune_task.h"
#include "support/text/error.h"

namespace tessera {

// A program whose callees are the tasks.
struct TunedProgram {
    std::string name;
    std::function<double()> seconds;  // of one run with the schedules to beat; UserError where it cannot be timed here
};

// The options of a command for the kernel of one task, with what `all` says of every task.
TuneOptions options_for(const CampaignEntry &entry, const TuneOptions &all);

// Why a task cannot be tuned on this machine, though it could on another.
bool is_foreign(const UserError &error);

// `options` hold for all tasks, each of which is for one shape. Writes an artifact for each kernel for which something faster was found,
// and prints what came of all.
// All tasks are prepared before the first trial: UserError campaign.tasks says what is wrong with which, campaign.budget that there are
// fewer trials than tasks. A task whose base cannot be measured is reported and makes the exit code 1, and so is, in a campaign of all
// artifacts, one for a target that this machine does not run. Where a Ctrl-C ends it, each task's best so far is confirmed and written.
// With `options.campaign.resume`, what the records have is not measured again. Of a program it also says what share of the time each callee
// has, and how fast the whole is predicted to be with what was found; where it cannot be timed, why.
int tune_many(const Registry &registry, const TuneOptions &options, const CampaignFile &campaign,
              const std::optional<TunedProgram> &program = {});

}  // namespace tessera

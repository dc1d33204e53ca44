// Several kernels tuned with one budget, which goes batch by batch where the next trials promise to save the most time
// (autotune/task_share.h).
#pragma once
#include "generators/campaign_file.h"
#include "generators/tune_task.h"

namespace tessera {

// `options` hold for all tasks. Writes an artifact for each kernel for which something faster was found, and prints what came of all.
// A task that cannot be prepared or whose base cannot be measured is left out and reported, and makes the exit code 1. Where a Ctrl-C
// ends it, each task's best so far is confirmed and written. With `options.campaign.resume`, what the records have is not measured again.
int tune_many(const Registry &registry, const TuneOptions &options, const CampaignFile &campaign);

}  // namespace tessera

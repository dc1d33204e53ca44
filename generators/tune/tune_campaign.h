// A campaign file's tasks: those for several shapes one after the other (tune_shapes.h), then all others together (tune_many.h).
#pragma once
#include "generators/tune/campaign_file.h"
#include "generators/tune/tune_task.h"

namespace tessera {

// Each shape has the same part of the file's trials and seconds, be it a task's only one. All tasks for several shapes are prepared before
// the first trial. With --json a document is printed for each of them and one for the others. UserErrors of tune_shapes and tune_many.
int tune_campaign(const Registry &registry, const TuneOptions &options, const CampaignFile &file);

}  // namespace tessera

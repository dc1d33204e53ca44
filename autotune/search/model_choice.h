// A schedule chosen by the cost model alone: the same search, in which the model's scores stand for measurements. The result is a
// function of task, options and model, on every machine, whether or not that can run the kernel.
#pragma once
#include "autotune/search/campaign.h"

namespace tessera {

// Judges `options.trials` candidates in batches. `best` is the one with the highest score, improved where that is above the base's
// and the program another; measurement.ratio is the predicted one. Nothing is measured, and the model learns nothing. UserError
// tune.stopped where options.stop was set before all were judged.
CampaignResult choose_by_model(const CampaignTask &task, const CampaignOptions &options, CostModel &model);

}  // namespace tessera

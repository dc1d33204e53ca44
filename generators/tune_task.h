// What the command line asks to tune, as a campaign's task.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "autotune/campaign.h"
#include "generators/prepare.h"

namespace tessera {

struct TuneOptions {
    KernelOptions kernel;
    std::vector<std::string> extents, space, runners;
    CampaignOptions campaign;
    std::string records = "tune.db", out = "schedules", name, model, page;
    int threads = 1;
    bool json = false, dry_run = false;
};

// The model that a campaign begins with: a file, "none", "roofline", or "" for the one that ships for the target. UserError as CostModel::load.
std::unique_ptr<CostModel> model_for(const std::string &choice, const Target &target);
// The content of that model: its hash, "roofline", or "none".
std::string model_hash(const std::string &choice, const Target &target);

// The artifact's name: <algorithm>/<numerics>/<target>/<shape, options and threads>, or the one that was asked for.
std::string artifact_name(const TuneOptions &options, const PreparedKernel &prepared, const DimExtents &extents);

// UserError tune.size: more than tuning can hold in memory.
void check_size(const PreparedKernel &prepared, const DimExtents &extents);

CampaignTask task_of(const PreparedKernel &prepared, const TuneOptions &options, const DimExtents &extents);

}  // namespace tessera

// Which cost model judges programs of a target.
#pragma once
#include <memory>
#include <string>

#include "costmodel/model/cost_model.h"
#include "schedules/target/target.h"

namespace tessera {

// The model that a campaign begins with: a file, "none", "roofline", or "" for the one that ships for the target. UserError as
// CostModel::load.
std::unique_ptr<CostModel> model_for(const std::string &choice, const Target &target);
// The content of that model: its hash, "roofline", or "none".
std::string model_hash(const std::string &choice, const Target &target);

}  // namespace tessera

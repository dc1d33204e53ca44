// Which cost model judges programs of a target.
#pragma once
#include <memory>
#include <string>

#include "costmodel/model/cost_model.h"
#include "generators/registry/registry.h"
#include "schedules/target/target.h"

namespace tessera {

// The model that a campaign begins with: the name of a registered one, a file, "none", "roofline", or "" for the one that ships for the
// target. UserError as CostModel::load; generator.builder where a registered one is not made.
std::unique_ptr<CostModel> model_for(const Registry &registry, const std::string &choice, const Target &target);
// What that model is, beside its code: the hash of its file, "registered:<name>", "roofline", or "none".
std::string model_hash(const Registry &registry, const std::string &choice, const Target &target);

}  // namespace tessera

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
// The target as the model that ships for it sees one. A model that was trained on another target's programs knows what caches do by the
// sizes that those had, and ranks programs badly by others: so it is shown those.
Target as_shipped_model_sees(const Target &target);
// What that model is, beside its code: the hash of its file, "registered:<name>", "roofline", or "none".
std::string model_hash(const Registry &registry, const std::string &choice, const Target &target);

}  // namespace tessera

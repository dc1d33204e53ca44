// What the artifact at the place of a new one has for a shape, where nothing says that the new one is faster.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "generators/tune/tune_task.h"

namespace tessera {

struct ExistingArtifact {
    KnobsByStage stages;
    std::string resolved;   // the hash of its program
    nlohmann::json choice;  // how it was chosen, as the artifact says it of this shape
};

// The outcome of the artifact that is at the run's place: where it was measured for the same kernel, shape and goal, still is the program
// that was measured, and the campaign neither measured that nor found what both records say is faster. No result: the shape was not
// reached.
std::optional<ExistingArtifact> existing_artifact(const TuneRun &run, const std::optional<CampaignResult> &result);

}  // namespace tessera

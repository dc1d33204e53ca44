// What an artifact that stands where a new one would go has for a shape, and that nobody knows to be slower than the new one.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "generators/tune/tune_task.h"

namespace tessera {

struct StandingCase {
    KnobsByStage stages;
    std::string resolved;   // the hash of its program
    nlohmann::json choice;  // how it was chosen, as the artifact says it of this shape
};

// Of the artifact that is at the run's place: where it was measured for the same kernel, shape and goal, still is the program
// that was measured, and the campaign neither measured that nor found what both records say is faster. No result: the shape was not
// reached.
std::optional<StandingCase> standing_case(const TuneRun &run, const std::optional<CampaignResult> &result);

}  // namespace tessera

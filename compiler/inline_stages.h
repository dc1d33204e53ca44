// Stages without storage: a rewrite of Algorithm to Algorithm.
#pragma once
#include "algorithms/algorithm.h"
#include "schedules/schedule.h"

namespace tessera {

// Substitutes each stage placed `inlined` into its consumers. UserError schedule.inline: only a Map that is no output can be, and no
// stage may grow beyond what anybody would compile.
Algorithm inline_stages(Algorithm algorithm, const std::map<std::string, Knobs> &stages);

}  // namespace tessera

// Whose schedules, models and code a target can take.
#pragma once
#include <string>
#include <vector>

#include "schedules/target/target.h"

namespace tessera {

// The target's name, then those of the targets whose features it has too, nearest first, then the one that it stands in for.
std::vector<std::string> nearest_targets(const Target &target);

}  // namespace tessera

#include "schedules/target/nearest_targets.h"

#include <algorithm>

namespace tessera {

std::vector<std::string> nearest_targets(const Target &target) {
    std::vector<std::string> nearest = {target.name};
    std::vector<std::string> below = target_names();
    for (auto name = below.rbegin(); name != below.rend(); ++name) {
        if (*name == "host" || *name == target.name) continue;
        const Target other = target_named(*name);
        if (other.arch != target.arch || other.compute_capability > target.compute_capability) continue;
        if (std::all_of(other.features.begin(), other.features.end(), [&](const std::string &f) { return target.has(f); }))
            nearest.push_back(*name);
    }
    if (!target.stands_in.empty()) nearest.push_back(target.stands_in);
    return nearest;
}

}  // namespace tessera

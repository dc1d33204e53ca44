// Schedules of like kernels, which a search begins with.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "generators/kernel/prepare.h"

namespace tessera {

struct WarmStart {
    std::string name;
    KnobsByStage stages;
    double distance = 0;
};

// The nearest, at most `most`: artifacts tuned for the same algorithm, or for one of the same surface, by the distance of their
// shapes (shape_distance), 1 further where they are for other numerics, other options or another target; then the families' of the
// targets whose code this one runs. Not the schedule that is tuned, and nothing for another kind of machine.
std::vector<WarmStart> warm_starts_for(const ScheduledKernel &prepared, const Extents &extents, const Library &library, size_t most = 4);

}  // namespace tessera

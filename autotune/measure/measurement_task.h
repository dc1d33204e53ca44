// What all candidates of a campaign compute.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "bench/measure/inputs.h"
#include "schedules/target/target.h"

namespace tessera {

struct MeasurementTask {
    Algorithm algorithm;  // with its fixed dims bound
    Target target;
    Extents extents;  // of the symbolic dims
    int threads = 1;
    uint64_t seed = 1;  // of the data
    int callers = 1;    // that are timed side by side, each with data of its own
    StatedInputs inputs = {};  // what is stated of the data
};

}  // namespace tessera

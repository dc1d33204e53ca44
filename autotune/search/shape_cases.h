// Which of several schedules, each tuned for a shape of its own, a kernel runs at which extents: conditions that are tried in order, as
// variants have them.
#pragma once
#include <functional>
#include <vector>

#include "bench/measure/inputs.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

struct ShapeCase {
    std::vector<Condition> when;  // "M <= 4"; the last case has none
    size_t shape = 0;             // position in what was given
};

// All shapes, of which there is one at least, have the same dims and no two are equal. Between the two neighbours whose extents of a
// dim are furthest apart as a ratio, the dim is cut at their geometric mean; what is on either side is cut in the same way, until each
// shape has a part of its own. So extents that nobody tuned for go to a shape that is near them as `shape_distance` means it. `alike` says
// that two shapes have one schedule: such neighbours become one case.
std::vector<ShapeCase> shape_cases(const std::vector<Extents> &shapes, const std::function<bool(size_t, size_t)> &alike);

}  // namespace tessera

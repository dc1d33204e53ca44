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

// Where one of several tuned schedules holds, when elsewhere another one is good: from `low` to `high` in every dim, both included.
struct ShapeBox {
    Extents low, high;
    friend bool operator==(const ShapeBox &, const ShapeBox &) = default;
};
// For each shape, with `shapes` as above, the extents within `reach` times its own, 1 or more. No other shape is in its box: two are parted
// at the geometric mean of the dim in which they are furthest apart.
std::vector<ShapeBox> shape_boxes(const std::vector<Extents> &shapes, double reach);
std::vector<Condition> conditions_of(const ShapeBox &box);
// Where a schedule that was tuned for `shape` is tried in its box, once each and without the shape: one dim after the other at its least
// and at its largest extent, then all dims so, then `inside` extents of the box. Ends are the next odd extents, which no tile divides, and
// the next multiples of 16, which vectors divide; an extent that has no such number between it and the end stays.
std::vector<Extents> probes_of(const ShapeBox &box, const Extents &shape, int inside);
// The box without the side on which `slow` lies: in each dim in which it is not the shape's, the end is brought to the geometric mean of
// both, or to the shape's where that is near.
ShapeBox shrunk(ShapeBox box, const Extents &shape, const Extents &slow);

}  // namespace tessera

// One kernel tuned for several shapes, one after the other, as one artifact: a variant for each (autotune/search/shape_cases.h), and the
// last one for all else.
#pragma once
#include <functional>
#include <vector>

#include "generators/tune/tune_task.h"
#include "support/processes/interruption.h"

namespace tessera {

// What is tuned for each shape. A dim that --shape or --extents give several extents is one of those in which shapes differ: the kernel
// leaves it dynamic, and shape i has the i-th of them. One element where no dim has several. UserError command.shape: dims with
// several, but not equally many; a shape twice.
std::vector<TuneOptions> options_by_shape(const TuneOptions &options);

// `options` have several shapes. The budget is that of all together; a search begins with what was found for the shapes before it, and its
// model knows what was measured of them. Where a Ctrl-C ends it, what is not reached keeps the schedule to beat. UserErrors of prepare_run;
// campaign.budget where there are fewer trials than shapes; tune.prepack where operands may be packed ahead of time.
int tune_shapes(const Registry &registry, const TuneOptions &options);
// The same in two steps, so that several are prepared before the first trial: the rest is done by calling the result, once, which gives the
// exit code. The registry outlives it.
std::function<int(Interruption &)> prepared_shapes(const Registry &registry, const TuneOptions &options);

}  // namespace tessera

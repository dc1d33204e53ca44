// A stage that is placed or inlined runs later than the algorithm says: where its consumers run. It must still read states as they
// were, although an update or a call may have written them in between.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// `algorithm` as it is after splits and before stages are inlined. A stage inside the loops of the update itself is for
// the lowering to judge. UserError schedule.order.
void check_order(const Algorithm &algorithm, const KnobsByStage &stages);

// After stages were inlined: an update still reads of its state the element that it writes and no other. UserError schedule.order.
void check_updates(const Algorithm &algorithm);

// What a step loads, sizes of its dims among it.
std::set<std::string> tensors_read(const Step &step, const Algorithm &algorithm);
// The states that it writes.
std::set<std::string> states_written(const Step &step);
// Those that stages, calls, extents of dims or the caller read.
std::set<std::string> tensors_read(const Algorithm &algorithm);

}  // namespace tessera

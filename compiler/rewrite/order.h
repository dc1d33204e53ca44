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

// Whether a stage of the rewritten algorithm was made from one of `stages`; `all` are the stages before the rewrites.
bool comes_of(const std::string &name, const std::set<std::string> &stages, const std::vector<Stage> &all);

// A call that writes states, and the stages that run before it, by their names before the rewrites.
struct WritingCall {
    std::string scope;
    std::set<std::string> states;
    std::set<std::string> before;
};

// `algorithm` as it is after splits and before stages are inlined, of `declared`. A stage inside the loops of the update itself is for
// the lowering to judge. UserError schedule.order.
void check_order(const Algorithm &algorithm, const Algorithm &declared, const KnobsByStage &stages, const std::vector<WritingCall> &calls);

// After stages were inlined: an update still reads of its state the element that it writes and no other. UserError schedule.order.
void check_updates(const Algorithm &algorithm);

// What a stage loads, sizes of its dims among it.
std::set<std::string> tensors_read(const Stage &stage, const Algorithm &algorithm);
// Those that stages, calls, extents of dims or the caller read.
std::set<std::string> tensors_read(const Algorithm &algorithm);

}  // namespace tessera

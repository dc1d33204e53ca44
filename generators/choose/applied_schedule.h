// A schedule as it applies to one kernel: merged with its ancestors and with the schedules of the kernel's callees, in the kernel's
// names, its short forms written out.
#pragma once
#include <vector>

#include "schedules/artifact/callee_schedules.h"

namespace tessera {

// Nothing in it changes after it is made. Empty: no schedule, every stage at root in plain loops.
struct AppliedSchedule {
    std::vector<Schedule> ancestry;  // the schedule, its parent, …
    ProgramSchedule program;
    ResolvedSchedule resolved;  // written out
};

// What finds the schedule of a callee that nothing is said of: CalleeRules::match, or none.
using MatchCallee = decltype(CalleeRules::match);

// `fixed` are the dims that the kernel fixes, `made_of` is what `declared` was made of. UserError as resolve_program; the schedule's own
// addresses are left to check.h.
AppliedSchedule applied_schedule(const Schedule &schedule, const Algorithm &declared, const Extents &fixed, const Library &library,
                                 const MatchCallee &match, const std::shared_ptr<const MadeOf> &made_of = {});

}  // namespace tessera

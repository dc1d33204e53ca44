#include "generators/choose/applied_schedule.h"

#include "algorithms/transform/inline_calls.h"
#include "compiler/rewrite/split.h"
#include "schedules/check/check.h"
#include "schedules/knobs/written_out.h"

namespace tessera {

// Whether every address of the schedule leads somewhere in the algorithm, before and after its splits. UserErrors of check.h.
static void check_addresses(const ResolvedSchedule &schedule, const Algorithm &declared) {
    check(schedule, declared);
    const Algorithm inlined = inline_calls(declared);
    for (size_t v = 0; v < schedule.variants.size(); v++)
        check_stages(schedule, static_cast<int>(v), apply_splits(inlined, schedule.variants[v].stages));
    check_stages(schedule, -1, apply_splits(inlined, schedule.stages));
}

AppliedSchedule applied_schedule(const Schedule &schedule, const Algorithm &declared, const Extents &fixed, const Library &library,
                                 const MatchCallee &match, const std::shared_ptr<const MadeOf> &made_of) {
    CalleeRules rules{
        match, [](const ResolvedSchedule &of_callee, const Algorithm &callee) { check_addresses(written_out(of_callee, callee), callee); },
        made_of};
    AppliedSchedule applied;
    applied.ancestry = library.ancestry(schedule);
    applied.program = resolve_program(schedule, declared, fixed, library, rules);
    applied.resolved = written_out(applied.program.resolved, declared);
    return applied;
}

}  // namespace tessera

// Calls that stay calls: their callees are emitted once and invoked (calls.h).
#pragma once
#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/scope.h"
#include "compiler/rewrite/calls.h"
#include "compiler/rewrite/order.h"

namespace tessera {

struct KeptCalls {
    PartlyInlined inlined;
    std::vector<Callee> callees;    // one for each call that stayed
    std::set<std::string> results;  // of the calls, which stages load as if they were inputs
    Algorithm algorithm;            // the inlined one with these results
};

// Inlines the other calls; takes the knobs of the callees' stages out of `stages`. UserError schedule.call, schedule.prepack.
KeptCalls keep_calls(const Algorithm &algorithm, KnobsByStage &stages);
std::vector<WritingCall> writing_calls(const KeptCalls &kept);
// Whether the call runs before the stage of the rewritten algorithm.
bool runs_before(const KeptCalls &kept, size_t call, const std::string &stage);

// Runs the program that the callee was lowered to on what the caller binds; `program` has it then, unless it had one like it. UserError
// schedule.call where the caller's tensors are not stored in full.
TileBody run_call(const Callee &callee, TileProgram lowered, const Lowering &lowering, const Scope &scope, TileProgram &program);

}  // namespace tessera

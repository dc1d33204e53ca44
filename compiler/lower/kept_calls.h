// Calls that stay calls: their callees are emitted once and invoked (calls.h).
#pragma once
#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/scope.h"
#include "compiler/rewrite/calls.h"

namespace tessera {

struct KeptCalls {
    Algorithm algorithm;                    // the inlined one with the results of calls that stayed
    std::map<std::string, Callee> callees;  // of these, by scope
    std::set<std::string> results;          // of these, which stages load as if they were inputs
};

// Inlines the other calls; takes the knobs of the callees' stages out of `stages`. UserError schedule.call, schedule.prepack.
KeptCalls keep_calls(const Algorithm &algorithm, KnobsByStage &stages);

// Runs the program that the callee was lowered to on what the caller binds; `program` has it then, unless it had one like it. UserError
// schedule.call where the caller's tensors are not stored in full.
TileBody run_call(const Callee &callee, TileProgram lowered, const Lowering &lowering, const Scope &scope, Names &names,
                  TileProgram &program);

}  // namespace tessera

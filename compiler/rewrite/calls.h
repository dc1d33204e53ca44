// Calls whose callee is emitted once and invoked: those at whose scope `"call": "once"` stands, and those that repeat. The callee and the
// part of the caller's schedule about it are written in names of the callee's own, so that equal callees give one program.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "algorithms/transform/inline_calls.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

struct Callee {
    std::string scope;
    Algorithm algorithm;  // with calls; dims and tensors that the caller binds alike are one
    KnobsByStage stages;
    std::map<std::string, std::string> dims;  // of the algorithm -> of the caller
    std::map<std::string, View> tensors;      // inputs, states and outputs of the algorithm -> of the caller
    std::map<std::string, Expr> parameters;   // over the caller's
    std::optional<Repeat> repeat = {};
    bool in_parallel = false;  // its rounds
};

// Which calls are emitted once. UserError schedule.call for a `call` knob that is at no scope, schedule.use for a callee's schedule that
// was not merged in.
KeepsCall emitted_once(const Algorithm &algorithm, const KnobsByStage &stages);

// The callees of the caller's calls. Moves the knobs of their stages out of `stages`. UserError schedule.call for a place that
// leads into a call or out of it.
std::map<std::string, Callee> take_callees(const Algorithm &caller, KnobsByStage &stages);

}  // namespace tessera

// A call that stays a call, as nodes of a tile program: an Invoke, or the rounds of one that repeats.
//
// What a round carries to the next has two places in turn, so nothing is copied, and code does not grow with the rounds:
//
//   carry[2, …] in workspace
//   invoke layer(x -> carry[0])                        the first round reads what the call is given
//   for l < n - 2:  invoke layer(carry[l % 2] -> carry[1 - l % 2])
//   invoke layer(carry[(n - 2) % 2] -> y)              the last one writes the result
//
// Where data decides which round is the last, the result is copied at the end. A stacked output that is carried is read where it lies.
// Where a host that sees no data starts each nest, rounds that data counts are all those that there may be, each under the condition that
// it is one.
#pragma once
#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/scope.h"
#include "compiler/rewrite/calls.h"

namespace tessera {

// `program` is what the callee was lowered to, which is invoked by `name`. UserError schedule.call where the caller's tensors are not
// stored in full, or a view of them is none of a buffer.
TileBody rounds_of(const Callee &callee, const std::string &name, const TileProgram &program, const Lowering &lowering, const Scope &scope,
                   Names &names);

}  // namespace tessera

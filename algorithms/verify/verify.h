// Whether a value is a legal algorithm. Everything downstream takes these rules for granted.
//
//   names       letters, digits and '_', in parts separated by '.', the first character no digit; one meaning each
//   dims        constraints that some extent satisfies; derived sizes without cycles; ragged dims only inside the dims
//               whose indices their sizes use, and never as an axis of a tensor or a result
//   loads       of inputs, states, constants, results of earlier stages and of calls; right rank and type; every index
//               proved inside (prove.h) under the load's own guard, or clamped by `bounded`
//   monoids     one lift, combine and step for each part, of the part's type; a part sees parts of its own extra dims
//               and those without any
//   updates     of a state, inside it; other elements of the same state are not read by the stage that writes it
//   numerics    float accumulators are no narrower than the policy's
//   calls       every input, state, parameter and symbolic dim of the callee bound, to something that satisfies it
//   numerics    checks are of stages of floats, stated ranges of inputs and states
//   effects     `memory` declared exactly when a state is written
//
// A state loaded by a stage after one that updates it has its new value. `where` of a reduction does not make a load
// legal: the load may be carried out and its value dropped.
#pragma once
#include "algorithms/ir/algorithm.h"

namespace tessera {

// Throws UserError algorithm.<rule> naming the algorithm, stage, tensor or dim: name, dim, unknown-dim, unknown-tensor,
// unknown-parameter, parameter-range, ragged, rank, type, variable, order, bounds, monoid, update, accumulate, numerics, call, cycle,
// output, effects, expression.
void verify(const Algorithm &algorithm);

}  // namespace tessera

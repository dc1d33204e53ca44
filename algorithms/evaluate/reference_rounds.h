// Runs the calls of an algorithm that repeat, for the reference interpreter (reference.h): each round evaluates the callee by itself. What
// it is given and what it leaves in states are stages of the caller, one for each tensor, with the callee's axes for dims.
#pragma once
#include <functional>

#include "algorithms/evaluate/reference_stage.h"

namespace tessera {

// The algorithm with these stages and what they load. All other calls are inlined.
Algorithm with_round_stages(Algorithm algorithm);
// Whether it is one of them, or its result.
bool is_of_rounds(const std::string &name);
inline bool is_of_rounds(const Stage &stage) { return is_of_rounds(stage.name); }

// Evaluates the callee of a round; `extents` has those of its dims that are not derived.
using EvaluateRound = std::function<std::map<std::string, Array>(const Algorithm &callee, std::map<std::string, Array> tensors,
                                                                 const std::map<std::string, Scalar> &parameters, const Extents &extents)>;

// `algorithm` has the stages. What they give `in_double` is rounded to what the callee declares.
void run_rounds(const Call &call, const Algorithm &algorithm, StageRunner &runner, bool in_double, const EvaluateRound &evaluate_round);

}  // namespace tessera

// The reference interpreter: runs any Algorithm directly, stage by stage, as its definition reads. It is the judge of
// everything that is scheduled, so it is plain before it is fast.
#pragma once
#include <map>
#include <string>

#include "algorithms/evaluate/array.h"
#include "algorithms/evaluate/needed_boxes.h"
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"

namespace tessera {

enum class Precision { policy, f64 };

struct EvaluationOptions {
    Precision precision = Precision::policy;
    Extents extents;           // of symbolic dims that no given tensor has
    bool every_stage = false;  // also return the results of all stages
    // Only these points of outputs, and what they need, are computed, and a result has the extents of its box. Then no other output is
    // given. Empty: all. The algorithm updates no state, and `extents` has those of all dims that no data decides.
    std::map<std::string, Box> boxes = {};
};

// Gives the outputs, and every state as it is at the end. `tensors` gives inputs and states, `parameters` all parameters.
//   policy: each operation in its declared type; bit for bit what the definition says.
//   f64: every float operation and stage in double (in_double.h); inputs and states are read at their stored type.
// Reductions fold by the monoid's `step` in row-major order of the reduced dims. An update reads its own state as it
// was before. Errors: reference.tensor, reference.parameter, reference.extent (UserError); a load outside its tensor is
// an InternalError.
std::map<std::string, Array> evaluate(const Algorithm &algorithm, std::map<std::string, Array> tensors,
                                      const std::map<std::string, Scalar> &parameters, const EvaluationOptions &options);
std::map<std::string, Array> evaluate(const Algorithm &algorithm, std::map<std::string, Array> tensors,
                                      const std::map<std::string, Scalar> &parameters = {}, Precision precision = Precision::policy);

}  // namespace tessera

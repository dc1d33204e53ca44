// What an author says that the derivative of an algorithm is, in place of that of its stages. Derivatives of whoever calls the algorithm
// take it (with_rule, derivatives.h).
//
//   jvp        inputs: what it reads of the algorithm's inputs and outputs, and x.tangent; outputs y.tangent, linear in tangents
//   backward   inputs: what it reads of the algorithm's inputs and of what `forward` gives, and y.grad; outputs x.grad
//   forward    inputs: those of the algorithm; outputs: the same as the algorithm's, and beside them what backward reads
//
// All know tensors, dims and parameters by the algorithm's names. A tangent or a gradient has the dims of its tensor (of a parameter none)
// and its type, f32 where that has less than 16 bits. An input without one counts as constant, and so does an output.
#pragma once
#include <memory>
#include <set>
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

struct DerivativeRule {
    std::shared_ptr<const Algorithm> jvp = nullptr;       // none: the transpose of backward
    std::shared_ptr<const Algorithm> backward = nullptr;  // none: the transpose of jvp
    std::shared_ptr<const Algorithm> forward = nullptr;   // none: the algorithm itself
    // From the derivative of the stages, on purpose: what is clipped or passed straight through. Otherwise differences are compared with it
    // whenever a generator makes the algorithm (evaluate/rule_laws.h).
    bool differs = false;
};

// The inputs, states and parameters that a rule has a derivative by, and the outputs that it has one of.
struct RuleReach {
    std::set<std::string> by, of;
};
RuleReach reach_of(const Algorithm &with_rule);

// The type of tangents and gradients of a tensor of floats where callers have them: its own, or f32 where that has less than 16 bits.
DType derivative_type(DType type);

}  // namespace tessera

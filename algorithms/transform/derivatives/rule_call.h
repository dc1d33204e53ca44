// Calls of algorithms with a rule, as derivatives of them are put together.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "algorithms/ir/derivative_rule.h"
#include "algorithms/transform/derivatives/program.h"
#include "algorithms/transform/derivatives/request.h"

namespace tessera::differentiation {

// What runs beside the algorithm for its derivative, in one direction.
struct RulePart {
    std::shared_ptr<const Algorithm> algorithm;
    std::shared_ptr<const Algorithm> primal;   // runs in place of the algorithm: gives what the part reads
    std::map<std::string, std::string> given;  // of what a tangent or a cotangent is given -> the part's input
    std::map<std::string, std::string> gives;  // of what it gives one -> its output
};
// What the algorithm's rule says, or the transpose of that. UserError derivative.linear where it has none.
RulePart jvp_part(const std::shared_ptr<const Algorithm> &of);
RulePart backward_part(const std::shared_ptr<const Algorithm> &of);

// The call with the primal as its callee; what that gives beside the results has names of its own.
Call primal_call(Program &program, const Call &given, const RulePart &part);
// A call of the part that takes what it reads of what `given` takes and of what `primal` gives. What `part.given` says is not bound yet.
Call part_call(Program &program, const Call &given, const Call &primal, const RulePart &part, const std::string &suffix);

}  // namespace tessera::differentiation

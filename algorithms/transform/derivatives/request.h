// What a transform is asked, checked and filled in.
#pragma once
#include "algorithms/transform/derivatives/activity.h"
#include "algorithms/transform/derivatives/derivatives.h"

namespace tessera::differentiation {

struct Request {
    Algorithm f;  // its only calls repeat, in callees too, or are of algorithms with a rule
    std::vector<Source> by;
    std::vector<Tensor> of;  // outputs that change
    Activity active;
    Residuals residuals = {};
    std::string prefix = "";  // of names in f where it is a callee: "layers."
};

// UserErrors derivative.unknown, .nothing.
Request checked(const Algorithm &f, const By &by);
// For one round of a call.
Request of_round(const Call &call, const RoundActivity &round);
// A result of a step of the algorithm.
Tensor result_of(const Algorithm &f, const std::string &name);

}  // namespace tessera::differentiation

// What a transform is asked, checked and filled in.
#pragma once
#include "algorithms/transform/derivatives/activity.h"
#include "algorithms/transform/derivatives/derivatives.h"

namespace tessera::differentiation {

struct Source {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::string> dims;
    bool is_parameter = false;
};

struct Request {
    Algorithm f;  // without calls
    std::vector<Source> by;
    std::vector<Tensor> of;  // outputs that change
    Activity active;
};

// UserErrors derivative.unknown, .nothing, .repeat.
Request checked(const Algorithm &f, const By &by);
// A result of a stage of the algorithm.
Tensor result_of(const Algorithm &f, const std::string &name);

}  // namespace tessera::differentiation

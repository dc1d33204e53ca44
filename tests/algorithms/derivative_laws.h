// What derivatives are judged by: central differences of the algorithm in f64, and the inner product of a linear map with its adjoint.
#pragma once
#include <map>
#include <optional>
#include <random>
#include <string>

#include "algorithms/evaluate/reference.h"
#include "algorithms/transform/derivatives/derivatives.h"

namespace tessera::test {

struct Given {
    Extents extents;  // of symbolic dims
    std::map<std::string, Array> tensors;
    std::map<std::string, Scalar> parameters;
};

// Numbers for all inputs, states and parameters: floats of few bits in -1.5 .. 1.5, so that steps by 2^-12 of them are exact, integers
// below `below`. What `fixed` has is taken from there.
Given random_given(const Algorithm &f, const Extents &extents, std::mt19937 &random, const std::map<std::string, Array> &fixed = {},
                   int64_t below = 4);

// The largest difference between J v and central differences, relative to what is added up there. Nothing where the differences of two step
// sizes disagree: a kink lies between.
std::optional<double> error_of_jvp(const Algorithm &f, const By &by, const Given &given, std::mt19937 &random);

// |<w, J v> - <J' w, v>| relative to the sum of the products' magnitudes.
// `backward`: in place of vjp(f, by).
double error_of_vjp(const Algorithm &f, const By &by, const Given &given, std::mt19937 &random,
                    const std::optional<Algorithm> &backward = {});

}  // namespace tessera::test

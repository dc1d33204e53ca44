// Calls that repeat, as derivatives of them are put together.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/transform/derivatives/forward_part.h"
#include "algorithms/transform/derivatives/program.h"
#include "algorithms/transform/derivatives/request.h"

namespace tessera::differentiation {

// What the caller calls dims of the callee.
std::vector<std::string> dims_in_caller(const Call &call, const std::vector<std::string> &callees);

// Binds the dims that the call's callee has beside those of what it is derived from, and forgets those that it lacks.
void bind_dims(Program &caller, Call &call);

// What a call that repeats backward wants of its callee: where the cotangents of outputs come from, and where gradients go.
struct RoundWiring {
    struct Carry {
        std::string input;   // of which the gradient is carried to the round before; "": nothing is, and 0 is given
        std::string output;  // whose cotangent it is there
    };
    std::vector<Carry> carries;
    std::vector<std::string> given;  // outputs that are stacked: a round's own cotangent
    std::set<std::string> added;     // tensors and parameters that all rounds see: gradients are added up
    std::set<std::string> saved;     // results of steps that are read instead of made again
};

// The callee that runs backward, and what its inputs and outputs are called.
struct RoundBackward {
    Algorithm callee;
    std::vector<std::string> carried_in;                 // by carry
    std::vector<std::string> carried_out;                // likewise
    std::map<std::string, std::string> cotangents;       // by output
    std::map<std::string, std::string> sums, gradients;  // by what the derivative is by
    ForwardPart part;                                    // of which nobody says what is read
};
RoundBackward round_backward(const Request &round, const RoundWiring &wiring);

// Whether the view or the expression is another one in each round.
bool varies(const Call &call, const Expr &e);
bool varies(const Call &call, const View &view);

}  // namespace tessera::differentiation

// A stage as what it is linear in: the change of each of its results as a sum of terms, a coefficient times the change of an element that
// it reads.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/transform/derivatives/activity.h"
#include "algorithms/transform/derivatives/coefficients.h"

namespace tessera::differentiation {

// At each point, under the conditions, coefficient times the tangent of `source` at `index`. The points are those of the result and of
// what is folded. Coefficients load primal tensors only.
struct Term {
    bool folded = false;  // summed over the dims of the fold
    std::vector<Expr> conditions;
    Expr coefficient;
    std::string source;  // a tensor, a parameter, or another result of the same stage that stands before this one
    std::vector<Expr> index;
};

// The results of a scan follow each other: h = factor h + terms, from its first element on.
struct Recurrence {
    std::string dim;
    ScanDirection direction = ScanDirection::forward;
    bool inclusive = true;
    Expr segments;  // undefined: none
    Expr factor;    // undefined: 1
};

struct LinearResult {
    Tensor result;                    // of the primal: its name, dims and type
    std::vector<std::string> points;  // dims that the stage goes over: the result's, but where a scatter computes the position
    std::vector<std::string> folded;  // dims of the fold
    Expr where;                       // of the fold; undefined: everywhere
    std::vector<Expr> at;             // of a scatter: where in the result a point's sum goes; empty: at its own indices
    std::optional<Recurrence> scan;
    std::vector<Term> terms;
};

struct LinearStage {
    std::vector<Stage> primal;          // residuals that the primal did not have, in order
    std::vector<LinearResult> results;  // that change; a result is read only by terms of later ones
};

// What linearising a stage asks of the algorithm around it.
struct LinearScope {
    const Algorithm &algorithm;  // without calls
    const Activity &active;
    std::function<std::string(const std::string &)> fresh;  // a name that no stage, tensor or dim has
    std::set<std::string> outputs;
};

// A request for the derivative of a value of the stage, by what is active around it.
CoefficientRequest request_for(const LinearScope &scope, const Stage &stage, const Expr &value);
// A term for each coefficient.
std::vector<Term> terms_of(const CoefficientRequest &request, bool folded);
Tensor result_named(const Stage &stage, const std::string &name);
// Loads of the element at the stage's own indices.
Expr own_element(const Tensor &tensor);
std::vector<Expr> variables_of(const std::vector<std::string> &dims);

}  // namespace tessera::differentiation

// Derivatives of one expression by the tensors that it loads: reverse accumulation over its shared nodes, with the choice outside.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"

namespace tessera::differentiation {

// What a derivative is computed in: f32 for all that is stored narrower.
DType arithmetic_type(DType type);

// The derivative of an expression by what a leaf has at the point, where the conditions hold, and 0 elsewhere.
struct Coefficient {
    Expr leaf;  // a load or a parameter
    std::vector<Expr> conditions;
    Expr value;  // in the arithmetic type of the leaf
};

struct CoefficientRequest {
    Expr value;
    // What the derivative of `value` itself is multiplied with; undefined: 1.
    Expr seed = {};
    // Loads and parameters that have a tangent.
    std::function<bool(const Expr &leaf)> is_active;
    // Whether a load of integers gives bits of numbers that have a tangent.
    std::function<bool(const Expr &load)> holds_bits = [](const Expr &) { return false; };
    // The result that `value` is at the point: what a coefficient has in common with it is read from there. Undefined: there is none.
    Expr result = {};
    std::string stage = {};  // for messages: "linear.acc"
};

// One for each different leaf, in the order in which they stand in the expression. What a select does not choose is never multiplied. Casts
// between floats count as what they are in real arithmetic; comparisons, integers and what rounds to integers are constant; of two equal
// operands of min or max the second counts, and abs has the derivative 0 at 0. UserError derivative.bits where bits of an active number
// are made into a float.
std::vector<Coefficient> coefficients(const CoefficientRequest &request);

// a * b, a + b and -a, with no operation for what 1 and undefined, which is 0 of a sum, make plain.
Expr product(const Expr &a, const Expr &b);
Expr sum(const Expr &a, const Expr &b);
// The conjunction; undefined: none.
Expr all_of(const std::vector<Expr> &conditions);
// Whether it is a load, perhaps converted.
bool is_plain_load(const Expr &e);
Expr converted(DType type, const Expr &value);

}  // namespace tessera::differentiation

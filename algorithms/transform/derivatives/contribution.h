// The transpose of a term: what the cotangent of a result gives to that of a tensor which the term reads.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "algorithms/transform/derivatives/program.h"

namespace tessera::differentiation {

// A number times or divided by.
struct Factor {
    Expr value;
    bool divides = false;
};

// At each point of a tensor, under the conditions: the factors times `core`, a load or 1.
struct Contribution {
    std::vector<Expr> conditions;
    std::vector<Factor> factors;
    bool is_negative = false;
    Expr core;
    std::string stage;  // that makes the core alone; "": it is somebody else's
};

// The cotangent of a result at its own indices, and where it may differ from 0: conditions over indices alone.
struct Cotangent {
    Expr value;
    std::vector<Expr> support;
};

class Contributor {
public:
    explicit Contributor(Program &program) : p_(program) {}

    // What the term gives to the tensor of these dims that it reads: a gather wherever its index can be inverted, otherwise a scatter.
    // `reader` is the stage of the result, by which new stages are named: "<tensor>.grad.<reader>".
    Contribution of(const LinearResult &result, const Term &term, const Cotangent &cotangent, const Tensor &tensor,
                    const std::string &reader);

    // The expression with what stages hold already, the coefficients of folds, read from there.
    Expr with_known(const Expr &e) const;

private:
    struct Known {
        Expr value;
        Expr element;
    };
    Program &p_;
    std::vector<Known> known_;  // coefficients that are stages, at their own indices

    Expr as_stage(const Expr &value, const std::vector<std::string> &points, const std::string &reader);
};

// a product of factors, from its parts.
void split_factors(const Expr &e, std::vector<Factor> &factors, bool &is_negative);
Expr multiplied(Expr value, const std::vector<Factor> &factors);

}  // namespace tessera::differentiation

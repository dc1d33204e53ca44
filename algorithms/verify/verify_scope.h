// What the parts of the verifier (verify.h) share: the names of an algorithm, and checks of one expression in a place
// where some dims' indices are defined.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/index/bounds.h"

namespace tessera {

struct VerifyScope {
    const Algorithm &algorithm;
    std::vector<Dim> dims;  // also those that calls bring
    std::vector<Parameter> parameters;
    std::map<std::string, Tensor> tensors;  // all that can be loaded somewhere
    std::set<std::string> made;             // those of them that are there now
    std::vector<Ascending> ascending = {};  // of them

    [[noreturn]] void fail(const std::string &rule, const std::string &subject, const std::string &message) const;
    const Dim *find(const std::string &dim) const;
    // The dim, or an error that lists the dims.
    const Dim &dim(const std::string &name, const std::string &subject) const;
    bool ragged(const Dim &dim) const;  // its size uses an index
    // Where the indices of these dims are defined, and each has a point.
    Bounds facts(const std::vector<std::string> &dims) const;
};

// Checks names, types, ranks and bounds of an expression of `subject`, outside of any monoid, over the indices of `dims`
// (outermost first).
void verify_expression(const VerifyScope &scope, const std::string &subject, const Expr &e, const std::vector<std::string> &dims);
// That index lies inside the tensor for all points of the dims.
void verify_inside(const VerifyScope &scope, const std::string &subject, const Tensor &tensor, const std::vector<Expr> &index,
                   const std::vector<std::string> &dims);

void verify_name(const VerifyScope &scope, const std::string &what, const std::string &name);
void verify_constraints(const VerifyScope &scope);  // of dims
void verify_sizes(const VerifyScope &scope);        // of derived dims, once the tensors are known
// That all that the dim's size loads is there now.
void verify_size_is_made(const VerifyScope &scope, const std::string &subject, const Dim &dim);
void verify_monoid(const VerifyScope &scope, const std::string &subject, const Monoid &monoid);
void verify_stage(const VerifyScope &scope, const Stage &stage);
void verify_call(const VerifyScope &scope, const Call &call);

}  // namespace tessera

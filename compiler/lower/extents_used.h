// Whether what an algorithm computes depends on how long a dim is.
#pragma once
#include <set>
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

class ExtentUses {
public:
    // The algorithm has to outlive it.
    ExtentUses(const Algorithm &algorithm, const std::string &dim);

    // Whether a stage folds or scans over the dim, or over one whose size follows from it, or an expression asks for the size.
    bool by_stages() const;
    // The same of the call itself: its rounds, views and parameters.
    bool by_call(const Call &call) const;
    // Whether none of the callee's dims that are bound to such a dim matters in it. `bound`: callee's dim -> caller's; `invariant`: those
    // of the callee that do not.
    bool is_free(const std::map<std::string, std::string> &bound, const Algorithm &callee, const std::set<std::string> &invariant) const;

private:
    const Algorithm &algorithm_;
    std::set<std::string> dims_;  // the dim, those that are declared equal to it, and those whose sizes follow from it

    bool asks(const Expr &e) const;
};

}  // namespace tessera

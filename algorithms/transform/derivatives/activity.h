// What a derivative passes through: float tensors that change with what it is asked by and that change what it is asked of.
#pragma once
#include <set>
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera::differentiation {

struct Activity {
    std::set<std::string> tensors;     // and parameters: those that have a tangent
    std::set<std::string> holds_bits;  // integers that are bits of an active number, or choose among such
    bool is_active(const Expr &leaf) const { return tensors.count(leaf->name) > 0; }
};

// `by`: inputs, states and parameters; `of`: outputs. The algorithm has no calls.
Activity activity(const Algorithm &algorithm, const std::set<std::string> &by, const std::set<std::string> &of);

}  // namespace tessera::differentiation

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

// A tensor or a parameter that something is differentiated by.
struct Source {
    std::string name;
    DType dtype = DType::f32;
    std::vector<std::string> dims;
    bool is_parameter = false;
};

// `by`: inputs, states and parameters; `of`: outputs. Calls are those that repeat, in callees too, and those of algorithms with a rule,
// which says what changes with what.
Activity activity(const Algorithm &algorithm, const std::set<std::string> &by, const std::set<std::string> &of);

// What changes in a callee with these of its tensors and parameters, in any round. Without rounds an output that is carried is its input.
Activity changed_in(const Call &call, Activity inside);
// What a callee needs of its own for these outputs, in any round.
std::set<std::string> needed_in(const Call &call, std::set<std::string> needed);

// What a round is differentiated by and of. A carried input and the output that it is carried from are both there or neither.
struct RoundActivity {
    std::vector<Source> by;
    std::vector<std::string> of;
};
RoundActivity round_activity(const Call &call, const Activity &around);
// The same of a call whose callee has a rule, by that.
RoundActivity rule_activity(const Call &call, const Activity &around);

}  // namespace tessera::differentiation

// Which elements an expression's value depends on, and when: what the checked interpreter looks at before it trusts a value.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "algorithms/expr/expr.h"

namespace tessera {

struct ConditionalRead {
    std::string buffer;
    Expr condition;  // undefined: always
    std::vector<Expr> index;
};

// Every load of a buffer that is `watched`, with the condition under which its value matters: a select takes one side, a
// guarded load its fill where the guard fails. An index may be evaluated whether or not its condition holds: loads in it
// are guarded by that condition.
std::vector<ConditionalRead> conditional_reads(const std::vector<Expr> &roots, const std::function<bool(const std::string &)> &watched);

}  // namespace tessera

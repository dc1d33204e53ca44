#include "compiler/check/streamed_loops.h"

#include <algorithm>

#include "algorithms/index/bounds.h"

namespace tessera {

// Whether each iteration moves one element along the last axis, and nothing along the others.
static bool goes_along(const std::vector<Expr> &index, const std::string &variable_of_loop) {
    if (index.empty()) return false;
    const Expr next = substitute(index.back(), {{variable_of_loop, variable(variable_of_loop) + Expr(1)}});
    return simplify(next - index.back(), {}).is_constant(1) &&
           std::none_of(index.begin(), index.end() - 1, [&](const Expr &e) { return uses_variable(e, variable_of_loop); });
}

bool copies_row(const Loop &loop) {
    const Copy *copy = only<Copy>(loop.body);
    return copy && !copy->guard.defined() && copy->value.kind() == ExprKind::load && !copy->value->guarded &&
           goes_along(copy->index, loop.variable) && goes_along(index_of(copy->value), loop.variable);
}

}  // namespace tessera

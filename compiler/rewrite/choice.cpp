#include "compiler/rewrite/choice.h"

#include <algorithm>

namespace tessera {

static bool is_by(const Expr &e, Op op) { return e.is_operation(op) && e->args[1].is_constant(); }

// The points in a run, of a condition `index / c / d == k`; 0 for any other.
static int64_t run_of(const Expr &condition) {
    if (!condition.is_operation(Op::eq)) return 0;
    Expr quotient = condition->args[condition->args[0].is_constant() ? 1 : 0];
    int64_t length = 1;
    for (; is_by(quotient, Op::div); quotient = quotient->args[0]) length *= quotient->args[1]->value.integer;
    return length > 1 && quotient.kind() == ExprKind::variable ? length : 0;
}

Choice choice_of(const Stage &stage, const std::string &dim) {
    Choice choice;
    const Expr *value = only_value(stage);
    if (!value) return choice;
    std::set<int64_t> runs;
    const uint64_t bit = Expr::Node::bit_of(dim);
    walk(*value, [&](const Expr &n) {
        if (!n.is_operation(Op::select) || !(n->args[0]->variables & bit) || has_load(n->args[0]) ||
            variables_in(n->args[0]) != std::set<std::string>{dim})
            return;
        choice.by_index = true;
        walk(n->args[0], [&](const Expr &e) {
            if (is_by(e, Op::mod) && e->args[0].kind() == ExprKind::variable)
                choice.remainders = std::max(choice.remainders, e->args[1]->value.integer);
        });
        if (int64_t run = run_of(n->args[0])) runs.insert(run);
    });
    if (runs.size() == 1) choice.run = *runs.begin();
    return choice;
}

}  // namespace tessera

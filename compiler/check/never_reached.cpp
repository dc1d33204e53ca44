#include "compiler/check/never_reached.h"

namespace tessera {

// Whether it contradicts what is known, or itself.
static bool never_holds(const Expr &condition, const Bounds &known) {
    if (prove(!condition, known)) return true;
    if (!condition.is_operation(Op::bit_and)) return false;
    for (size_t i : {0, 1}) {
        Bounds other = known;
        other.assume(condition->args[i]);
        if (never_holds(condition->args[1 - i], other)) return true;
    }
    return false;
}

bool is_never_reached(const EnclosingScope &where, const Bounds &dims) {
    for (EnclosingScope s = where; s; s = s->outer) {
        const bool is_loop = s->count.defined(), is_condition = s->condition.defined();
        if (!is_loop && !is_condition) continue;
        Bounds around = dims;
        add_facts(around, s->outer, nullptr, Facts::counts);
        if (is_loop && prove(s->count <= Expr(0), around)) return true;
        if (is_condition && never_holds(s->condition, around)) return true;
    }
    return false;
}

}  // namespace tessera

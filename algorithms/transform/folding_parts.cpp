#include "algorithms/transform/folding_parts.h"

namespace tessera {

Monoid folding_parts(const Monoid &m) {
    Monoid result = m;
    result.batch.clear(), result.batch_parts.clear();
    result.inputs.clear(), result.lift.clear(), result.step.clear();
    for (size_t p = 0; p < m.parts.size(); p++) {
        DType type = m.parts[p].identity.type;
        result.inputs.push_back(type);
        result.lift.push_back(input(static_cast<int>(p), type));
    }
    for (const Expr &e : m.combine)
        result.step.push_back(rewrite(e, [](const Expr &n) { return n.kind() == ExprKind::right ? input(n->number, n.type()) : Expr(); }));
    return result;
}

}  // namespace tessera

#include "compiler/emit/one_comparison.h"

#include <cmath>

namespace tessera {

static bool is_never_nan(const Expr &e) {
    if (e.is_constant()) return !std::isnan(e->value.real);
    return e.kind() == ExprKind::cast && !is_float(e->args[0].type());
}

std::optional<OneComparison> as_one_comparison(const Expr &e) {
    if (e.kind() != ExprKind::operation || !is_float(e.type())) return {};
    if (e->op == Op::min || e->op == Op::max) {
        const Expr &a = e->args[0], &b = e->args[1];
        if (is_never_nan(b)) return OneComparison{e->op == Op::min, b, a};
        // Equal operands are the same then: of two zeros the first is the result.
        if (a.is_constant() && is_never_nan(a) && a->value.real != 0) return OneComparison{e->op == Op::min, a, b};
        return {};
    }
    if (e->op != Op::select || !e->args[0].is_operation(Op::lt)) return {};
    const Expr &less = e->args[0]->args[0], &more = e->args[0]->args[1];
    if (equal(e->args[1], less) && equal(e->args[2], more)) return OneComparison{true, less, more};
    if (equal(e->args[1], more) && equal(e->args[2], less)) return OneComparison{false, more, less};
    return {};
}

}  // namespace tessera

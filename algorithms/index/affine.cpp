#include "algorithms/index/affine.h"

#include <map>

#include "algorithms/index/prove.h"

namespace tessera {

static bool is_free_of_axes(const Expr &e) {
    bool is_free = true;
    walk(e, [&](const Expr &n) { is_free &= n.kind() != ExprKind::variable || n->name[0] != '%'; });
    return is_free;
}

std::optional<AxisSteps> affine(const Expr &index, size_t rank) {
    AxisSteps result{Expr(0), std::vector<Expr>(rank, Expr(0))};
    Linear rest;
    std::vector<Linear> steps(rank);
    try {
        const Bounds nothing;
        const Linear form = linear_form(index, nothing);
        rest = Linear(form.constant);
        for (const Linear::Term &term : form.terms) {
            std::optional<size_t> moved;
            Linear others(term.coefficient);
            for (const Expr &factor : term.factors) {
                if (is_free_of_axes(factor)) {
                    others = others * Linear::atom(factor);
                    continue;
                }
                size_t number = 0;
                while (number < rank && !equal(factor, axis(number))) number++;
                if (number == rank || moved) return std::nullopt;
                moved = number;
            }
            Linear &sum = moved ? steps[*moved] : rest;
            sum = sum + others;
        }
    } catch (const LinearOverflow &) { return std::nullopt; }
    result.first = to_expr(rest);
    for (size_t i = 0; i < rank; i++) result.steps[i] = to_expr(steps[i]);
    return result;
}

}  // namespace tessera

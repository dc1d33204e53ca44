#include "algorithms/index/ascending.h"

namespace tessera {

// The expression over extents that `clamped` does not exceed, where it is max(min(x, most), 0) as i32 holds it.
static Expr most_of(const Expr &clamped) {
    if (clamped.kind() != ExprKind::cast || clamped.type() != DType::i32) return {};
    const Expr &e = clamped->args[0];
    if (e.type() != DType::index || !e.is_operation(Op::max) || !e->args[1].is_constant(0) || !e->args[0].is_operation(Op::min)) return {};
    const Expr &most = e->args[0]->args[1];
    const bool is_extent =
        most.kind() == ExprKind::extent || (most.is_constant() && most->value.integer >= 0 && most->value.integer <= INT32_MAX);
    return is_extent ? most : Expr();
}

// The tensor that max(min(x, most), 0) clamps, where x is an element of it.
static std::string given_in(const Expr &clamped) {
    const Expr *x = &clamped->args[0]->args[0]->args[0];
    while ((*x).kind() == ExprKind::cast) x = &(*x)->args[0];
    return (*x).kind() == ExprKind::load ? (*x)->name : "";
}

std::vector<Ascending> ascending_results(const Algorithm &algorithm) {
    std::vector<Ascending> found;
    for (const Stage &stage : algorithm.stages()) {
        const auto *scan = std::get_if<Scan>(&stage.body);
        if (!scan || !scan->inclusive || scan->direction != ScanDirection::forward || scan->segments.defined()) continue;
        if (stage.dims.size() != 1 || !stage.rows.empty() || scan->inputs.size() != 1) continue;
        const Monoid standard = max_monoid(DType::i32);
        const Monoid &monoid = scan->monoid;
        if (monoid.parts.size() != 1 || monoid.step.size() != 1 || !equal(monoid.step[0], standard.step[0])) continue;
        if (monoid.parts[0].identity.integer > 0) continue;
        const Expr most = most_of(scan->inputs[0]);
        if (most.defined()) found.push_back({results_of(stage)[0].name, most, given_in(scan->inputs[0])});
    }
    return found;
}

}  // namespace tessera

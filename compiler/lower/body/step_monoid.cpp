// One element of the fold at a time, by its monoid's step.
#include "compiler/lower/body/fold_step.h"
#include "compiler/lower/context/built.h"

namespace tessera {

namespace {

struct MonoidStep {
    const Lowering &lowering;
    const Cursor &at;
    const Scope &scope;
    Names &names;
    const Monoid &monoid;
    TileBody body = {};
    std::vector<Buffer> temporaries = {};  // of what is computed once for each point of the tile

    Expr accumulated(size_t part, const Point &point, const Scope &inside) const;
    Expr value_of(const Expr &step, const Point &point, const Scope &inside) const;
    Expr where_it_holds(const Expr &value, size_t part, const Point &point, const Scope &inside) const;
    std::vector<std::pair<Expr, Buffer>> compute_invariants(size_t part);
    void step(size_t part, const Buffer &to);
    void step_by_point(const std::vector<size_t> &parts);
    void step_together(const std::vector<size_t> &parts);
    void move_in_place(size_t part);
};

Expr MonoidStep::accumulated(size_t part, const Point &point, const Scope &inside) const {
    const Part &p = monoid.parts[part];
    return load(at.accumulator(part).name, p.identity.type, tile_index(at, inside, &p, point));
}

Expr MonoidStep::value_of(const Expr &step, const Point &point, const Scope &inside) const {
    return rewrite(step, [&](const Expr &n) -> Expr {
        if (n.kind() == ExprKind::input) return evaluate(lowering, at, inside, inputs_of(at.stage())[n->number], point);
        return n.kind() == ExprKind::left ? accumulated(n->number, point, inside) : Expr();
    });
}

// The stepped value, or the old one where the fold's condition fails.
Expr MonoidStep::where_it_holds(const Expr &value, size_t part, const Point &point, const Scope &inside) const {
    const Expr &where = at.fold.where;
    return where.defined() ? select(evaluate(lowering, at, inside, where, point), value, accumulated(part, point, inside)) : value;
}

std::vector<std::pair<Expr, Buffer>> MonoidStep::compute_invariants(size_t part) {
    std::vector<std::pair<Expr, Buffer>> invariants;
    for (const Expr &e : lowering.facts(at.stage()).invariants[part]) {
        const Buffer b = value_buffer(lowering, at, scope, ".weight", e.type(), names);
        append(body, over_tile(lowering, at, scope, names, {}, false, [&](const Point &point, const Expr &, const Scope &inside) {
                   return tile_node(Compute{b.name, tile_index(at, inside, nullptr, point), value_of(e, point, inside), Expr()});
               }));
        invariants.emplace_back(e, b);
        temporaries.push_back(b);
    }
    return invariants;
}

void MonoidStep::step(size_t part, const Buffer &to) {
    const auto invariants = compute_invariants(part);
    const Part &p = monoid.parts[part];
    append(body, over_tile(lowering, at, scope, names, p.dims, false, [&](const Point &point, const Expr &, const Scope &inside) {
               // Invariants go in as placeholders: rewriting works from the leaves up and would not meet them whole again.
               std::function<Expr(const Expr &)> replace = [&](const Expr &e) -> Expr {
                   for (auto &[invariant, b] : invariants)
                       if (equal(e, invariant)) return load(b.name, b.dtype, tile_index(at, inside, nullptr, point));
                   if (e.kind() != ExprKind::operation) return value_of(e, point, inside);
                   std::vector<Expr> args;
                   for (const Expr &arg : e->args) args.push_back(replace(arg));
                   return operation(e->op, args);
               };
               Expr value = invariants.empty() ? value_of(monoid.step[part], point, inside) : replace(monoid.step[part]);
               value = where_it_holds(value, part, point, inside);
               return tile_node(Compute{to.name, tile_index(at, inside, &p, point), value, Expr()});
           }));
}

// All new values of a point are there before the first old one goes.
void MonoidStep::step_by_point(const std::vector<size_t> &parts) {
    append(body, over_tile_in_steps(lowering, at, scope, names, [&](const Point &point, const Scope &inside) {
               TileBody steps, moves;
               for (size_t p : parts) {
                   const Buffer &own = at.accumulator(p), &next = at.accumulator(monoid.parts.size() + p);
                   const std::vector<Expr> index = tile_index(at, inside, &monoid.parts[p], point);
                   const Expr value = where_it_holds(value_of(monoid.step[p], point, inside), p, point, inside);
                   steps.push_back(tile_node(Compute{next.name, index, value, Expr()}));
                   moves.push_back(tile_node(Compute{own.name, index, load(next.name, own.dtype, index), Expr()}));
               }
               append(steps, std::move(moves));
               return steps;
           }));
}

void MonoidStep::step_together(const std::vector<size_t> &parts) {
    for (size_t p : parts) step(p, at.accumulator(monoid.parts.size() + p));
    for (size_t p : parts) move_in_place(p);
}

// From the second accumulators, which hold the new values.
void MonoidStep::move_in_place(size_t part) {
    const Part &p = monoid.parts[part];
    append(body, over_tile(lowering, at, scope, names, p.dims, false, [&](const Point &point, const Expr &, const Scope &inside) {
               const std::vector<Expr> index = tile_index(at, inside, &p, point);
               const Expr value = load(at.accumulator(monoid.parts.size() + part).name, p.identity.type, index);
               return tile_node(Compute{at.accumulator(part).name, index, value, Expr()});
           }));
}

}  // namespace

TileBody monoid_step(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const FoldOrder &order = lowering.facts(at.stage()).order;
    MonoidStep fold{lowering, at, scope, names, monoid_of(at.stage())};
    for (size_t p : order.alone) fold.step(p, at.accumulator(p));
    if (order.by_point && !order.together.empty()) fold.step_by_point(order.together);
    else fold.step_together(order.together);
    return in_allocs(fold.temporaries, std::move(fold.body));
}

}  // namespace tessera

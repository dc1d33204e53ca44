#include "compiler/lower/loops/point_loops.h"

#include "compiler/lower/context/loop.h"
#include "compiler/lower/loops/group_loops.h"
#include "compiler/lower/loops/versions.h"
#include "compiler/lower/place/placement.h"
#include "support/text/error.h"

namespace tessera {

// Slices of a reduction continue what earlier ones accumulated; single points of it outside the accumulators do not.
static void check_accumulates(const Cursor &at) {
    const Stage &stage = at.stage();
    const LoopName &loop = at.loop();
    const bool scanned = std::holds_alternative<Scan>(stage.body) && loop.dim == scanned_dim(stage);
    if (at.position >= at.nest->fold_at || !is_fold(stage) || scatters(stage) || (is_spatial(stage, loop.dim) && !scanned)) return;
    throw UserError("schedule.loops", stage.name + ": the loop '" + loop.text() + "' " +
                                          (scanned ? "runs along the scan" : "is a single point of the fold") +
                                          " and stands outside the loop '" + at.nest->loops[at.nest->fold_at - (scanned ? 0 : 1)].text() +
                                          "'; the order is " + text_of(at.nest->loops) + ". " +
                                          (scanned ? "Leave the scanned dim out of 'loops': it is innermost by itself."
                                                   : "Put it after the stage's own dims, or cut the dim into slices ('k')."));
}

static Built points(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const Expr &first, const Expr &count) {
    const std::string &dim = at.loop().dim;
    const Piece &p = at.pieces.at(dim);
    return repeat(lowering, at, scope, names, first, count, kind_at(lowering, at), [&](const Expr &index, const Scope &around) {
        Scope inside = around;
        inside.depth++;
        Cursor point = at;
        Piece &piece = point.pieces[dim];
        piece.lo = simplify(runs_backward(at.stage(), dim) ? p.lo + p.size - 1 - (index - p.lo) : index, inside.facts);
        piece.size = piece.max_size = Expr(1);
        return inside_loop(lowering, point, inside, names);
    });
}

Built over_points(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const LoopName &loop = at.loop();
    const Piece &p = at.pieces.at(loop.dim);
    check_accumulates(at);
    if (const int64_t group = group_of(at.nest->step); group > 1 && at.position + 1 == at.nest->loops.size())
        return over_groups(lowering, at, scope, names, group);
    // Where the condition holds for a first part of the range at every point of the tile, that part needs no test.
    const Expr &where = at.fold.where;
    Expr safe;
    if (where.defined() && !is_spatial(at.stage(), loop.dim) && !has_producers(lowering, at))
        safe = where_limit(where, loop.dim, at.pieces, scope.facts, false);
    if (!safe.defined()) return points(lowering, at, scope, names, p.lo, p.size);
    Cursor untested = at;
    untested.fold.where = Expr();
    // A loop of a negative count does not run, so what is left over needs no floor at 0.
    const Expr size = inhabited(p.size);
    auto points_below = [&](const Expr &limit) { return simplify(max(min(limit - p.lo, size), Expr(0)), scope.facts); };
    const Expr split = points_below(safe);
    // Where it holds nowhere beyond, nothing is left over.
    if (equal(split, points_below(where_limit(where, loop.dim, at.pieces, scope.facts, true))))
        return points(lowering, untested, scope, names, p.lo, split);
    const std::string name = names.unique(loop_variable(lowering, loop, names) + ".safe");
    Scope inside = scope;
    inside.facts.set(name, Expr(0), p.max_size.defined() ? p.max_size : Expr());
    Built built = points(lowering, untested, inside, names, p.lo, variable(name));
    built +=
        points(lowering, at, inside, names, simplify(p.lo + variable(name), inside.facts), simplify(size - variable(name), inside.facts));
    return in_let(name, split, std::move(built));
}

Built points_left(const Lowering &lowering, const Cursor &before, const Scope &scope, Names &names, const Expr &done, int64_t most) {
    StageNest nest = *before.nest;
    nest.loops[before.position].level.clear();
    Cursor at = before;
    at.nest = &nest;
    Piece &left = at.pieces[at.loop().dim];
    left.lo = simplify(left.lo + done, scope.facts), left.size = simplify(left.size - done, scope.facts), left.max_size = Expr(most);
    return over_points(lowering, at, scope, names);
}

}  // namespace tessera

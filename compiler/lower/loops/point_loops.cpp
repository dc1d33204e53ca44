#include "compiler/lower/loops/point_loops.h"

#include "compiler/lower/context/loop.h"
#include "compiler/lower/context/where_limits.h"
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

// When an iteration computes anything; undefined: always.
using IsLive = std::function<Expr(const Cursor &point, const Scope &inside)>;

static Built points(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const Expr &first, const Expr &count,
                    const IsLive &is_live = {}) {
    const std::string &dim = at.loop().dim;
    const Piece &p = at.pieces.at(dim);
    return repeat(lowering, at, scope, names, first, count, kind_at(lowering, at), [&](const Expr &index, const Scope &around) {
        Scope inside = around;
        inside.depth++;
        Cursor point = at;
        Piece &piece = point.pieces[dim];
        piece.lo = simplify(runs_backward(at.stage(), dim) ? p.lo + p.size - 1 - (index - p.lo) : index, inside.facts);
        piece.size = piece.max_size = Expr(1);
        const Expr live = is_live ? is_live(point, inside) : Expr();
        if (!live.defined() || live.is_constant(1)) return inside_loop(lowering, point, inside, names);
        inside.facts.assume(live);
        return in_guard(live, inside_loop(lowering, point, inside, names));
    });
}

// Points of a fold in whose iterations other stages are computed: for those where the condition holds nowhere, nothing is.
static Built live_points(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::string &dim = at.loop().dim;
    const Piece &p = at.pieces.at(dim);
    const auto limits = where_may_hold(lowering, scope, at.fold.where, dim, at.pieces);
    return points(lowering, at, scope, names, p.lo, p.size, [&](const Cursor &point, const Scope &inside) -> Expr {
        return !limits || !limits->with_gaps ? Expr() : may_hold(lowering, inside, at.fold.where, point.pieces);
    });
}

// Points of a fold whose condition holds at the first of them if it holds anywhere before the end of `safe` (undefined: before the last):
// those without a test, the others with one, unless it holds nowhere among them.
static Built points_up_to(const Limits &safe, const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const std::string &dim = at.loop().dim;
    const Piece &p = at.pieces.at(dim);
    Cursor untested = at;
    untested.fold.where = Expr();
    if (!safe.end.defined()) return points(lowering, untested, scope, names, p.lo, p.size);
    // A loop of a negative count does not run, so what is left over needs no floor at 0.
    const Expr size = inhabited(p.size);
    auto points_below = [&](const Expr &limit) { return simplify(max(min(limit - p.lo, size), Expr(0)), scope.facts); };
    const Expr split = points_below(safe.end);
    const auto live = where_may_hold(lowering, scope, at.fold.where, dim, at.pieces);
    const bool is_last = live && live->end.defined() && equal(split, points_below(live->end));
    if (is_last && !safe.first.defined()) return points(lowering, untested, scope, names, p.lo, split);
    const std::string name = names.unique(loop_variable(lowering, at.loop(), names) + ".safe");
    Scope inside = scope;
    inside.facts.set(name, Expr(0), p.max_size.defined() ? p.max_size : Expr());
    Built built = points(lowering, untested, inside, names, p.lo, variable(name));
    if (!is_last)
        built += points(lowering, at, inside, names, simplify(p.lo + variable(name), inside.facts),
                        simplify(size - variable(name), inside.facts));
    // Where the piece begins later, written so that it is seen to be inside of it.
    const Expr inside_piece = max(min(simplify(safe.end - p.lo, scope.facts), size), Expr(0));
    return in_let(name, safe.first.defined() ? inside_piece : split, std::move(built));
}

// Points of a fold: where its condition holds from the first of them on, without a test as far as it goes on to hold.
static Built points_by_condition(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const Piece &p = at.pieces.at(at.loop().dim);
    auto tested = [&] { return points(lowering, at, scope, names, p.lo, p.size); };
    auto safe = where_holds(lowering, scope, at.fold.where, at.loop().dim, at.pieces);
    if (!safe) return tested();
    if (safe->first.defined() && prove(safe->first <= Expr(0), scope.facts)) safe->first = Expr();
    const Expr from_first = safe->first.defined() ? simplify(safe->first <= p.lo, scope.facts) : constant_int(DType::boolean, 1);
    if (from_first.is_constant(1)) return points_up_to(*safe, lowering, at, scope, names);
    // A version of its own pays where the loop goes over all that lives: not inside a piece, and not of pieces that may run past the dim.
    const bool is_piece = p.lo.kind() != ExprKind::variable || step_in(at.fold.where, at.loop().dim) > 1;
    if (from_first.is_constant(0) || is_piece) return tested();
    Scope inside = scope;
    inside.facts.assume(from_first);
    Built first = points_up_to(*safe, lowering, at, inside, names);
    return in_guard(from_first, std::move(first), tested());
}

Built over_points(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const LoopName &loop = at.loop();
    const Piece &p = at.pieces.at(loop.dim);
    check_accumulates(at);
    if (const int64_t group = group_of(at.nest->step); group > 1 && at.position + 1 == at.nest->loops.size())
        return over_groups(lowering, at, scope, names, group);
    if (!at.fold.where.defined() || is_spatial(at.stage(), loop.dim)) return points(lowering, at, scope, names, p.lo, p.size);
    return has_producers(lowering, at) ? live_points(lowering, at, scope, names) : points_by_condition(lowering, at, scope, names);
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

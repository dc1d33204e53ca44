#include "compiler/lower/loops/group_loops.h"

#include "compiler/lower/context/loop.h"
#include "compiler/lower/loops/versions.h"

namespace tessera {

Built over_groups(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, int64_t group) {
    const Piece &p = at.pieces.at(at.loop().dim);
    auto group_at = [&](const Expr &lo, const Expr &limit, const Scope &around) {
        Scope inside = around;
        inside.depth++;
        Cursor cut = at;
        cut.fold.group = group, cut.fold.group_limit = limit;
        Piece &piece = cut.pieces[at.loop().dim];
        piece.lo = simplify(lo, inside.facts);
        piece.size = limit.defined() ? simplify(limit - lo, inside.facts) : Expr(group);
        piece.max_size = Expr(limit.defined() ? group - 1 : group);
        return inside_loop(lowering, cut, inside, names);
    };
    const Expr count = simplify(p.size / Expr(group), scope.facts);
    Built built = repeat(lowering, at, scope, names, Expr(0), count, LoopKind::serial,
                         [&](const Expr &i, const Scope &inside) { return group_at(p.lo + i * Expr(group), {}, inside); });
    if (is_multiple(p.size, group, scope.facts)) return built;
    const Expr done = simplify(count * Expr(group), scope.facts);
    const Expr some = simplify(done < p.size, scope.facts);
    Scope rest = count.is_constant(0) ? scope : after_loop(at, scope);
    rest.facts.assume(some);
    built += in_guard(some, group_at(p.lo + done, simplify(p.lo + p.size, rest.facts), rest));
    return built;
}

}  // namespace tessera

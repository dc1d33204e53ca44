#include "compiler/lower/loops/versions.h"

#include "algorithms/index/prove.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/live_part.h"
#include "compiler/lower/context/mapping.h"
#include "compiler/lower/loops/narrow_tiles.h"
#include "compiler/lower/place/placement.h"
#include "compiler/tile/tile_identity.h"

namespace tessera {

using BuildVersion = std::function<Built(const Scope &scope)>;

// One version where `condition` holds, and one otherwise; the second alone where both do the same. What they contain is never in scope
// together, so both have the same names, which also shows whether they do the same.
static Built versions(const Expr &condition, const Scope &scope, Names &names, const BuildVersion &first, const BuildVersion &second) {
    const size_t known = names.made().size();
    Scope holds = scope;
    holds.facts.assume(condition);
    Built where_it_holds = first(holds);
    const std::vector<std::string> of_first = names.forget(known);
    Built otherwise = second(scope);
    names.take(of_first);
    otherwise.has_border_version |= where_it_holds.has_border_version;
    if (equal(where_it_holds.body, otherwise.body)) return otherwise;
    return in_guard(condition, std::move(where_it_holds), std::move(otherwise));
}

// What has to hold for no load of the fold to need its guard anywhere in the pieces; true where there is nothing to tell apart.
static Expr needs_no_guards(const Lowering &lowering, const Cursor &at, const Scope &scope) {
    Expr all = constant_int(DType::boolean, 1);
    if (!lowering.tells_borders || !is_fold(at.stage()) || at.fold.begins_carries) return all;
    Pieces pieces = at.pieces;
    for (const LoopName &loop : at.nest->loops)
        if (!pieces.count(loop.dim)) pieces[loop.dim] = whole_under_where(lowering, scope, at.stage(), loop.dim, pieces);
    for (const Expr &e : lowering.facts(at.stage()).loads) {
        if (!e->guarded) continue;
        const Expr holds = holds_throughout(resolve(lowering, scope, e->args[e->args.size() - 2]), pieces);
        if (holds.defined() && !holds->loads) all = all && simplify(holds, scope.facts);
    }
    return simplify(all, scope.facts);
}

static Built inside_or_at_border(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const Expr is_inside = needs_no_guards(lowering, at, scope);
    if (is_inside.is_constant()) return with_placed(lowering, at, scope, names);
    Cursor border = at;
    border.at_border = true;
    Built built = versions(
        is_inside, scope, names, [&](const Scope &inside) { return with_placed(lowering, at, inside, names); },
        [&](const Scope &inside) { return with_placed(lowering, border, inside, names); });
    built.has_border_version = true;
    return built;
}

// The tile at the cursor, whose dims of `next` and after it run past their limits, in the smallest of their sizes that does.
static Built narrow_tile(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const std::vector<NarrowDim> &narrow,
                         size_t next) {
    if (next == narrow.size()) return with_placed(lowering, at, scope, names);
    const auto &[dim, sizes] = narrow[next];
    auto of_size = [&](size_t i, const Scope &inside) {
        Cursor cut = at;
        Piece &piece = cut.pieces[dim];
        piece.size = piece.max_size = Expr(sizes[i]);
        piece.padded = !prove(piece.lo + piece.size <= piece.limit, inside.facts);
        return narrow_tile(lowering, cut, inside, names, narrow, next + 1);
    };
    const Piece &piece = at.pieces.at(dim);
    // By halves: a proof inside has few conditions to look at then.
    std::function<Built(size_t, size_t, const Scope &)> one_of = [&](size_t first, size_t last, const Scope &inside) -> Built {
        if (first == last) return of_size(first, inside);
        const size_t middle = (first + last) / 2;
        const Expr is_larger = simplify(piece.lo + Expr(sizes[middle]) < piece.limit, inside.facts);
        if (is_larger.is_constant(0)) return one_of(first, middle, inside);
        if (is_larger.is_constant(1)) return one_of(middle + 1, last, inside);
        return versions(
            is_larger, inside, names, [&](const Scope &larger) { return one_of(middle + 1, last, larger); },
            [&](const Scope &otherwise) {
                Scope smaller = otherwise;
                smaller.facts.assume(piece.limit <= piece.lo + Expr(sizes[middle]));
                return one_of(first, middle, smaller);
            });
    };
    return one_of(0, sizes.size() - 1, scope);
}

Built inside_loop(const Lowering &lowering, const Cursor &at, const Scope &before, Names &names) {
    const std::vector<LoopName> &loops = at.nest->loops;
    bool more = false;
    for (size_t i = at.position + 1; i < loops.size(); i++) more |= loops[i].level == "micro";
    if (more || !lowering.mapping->tells_full_from_partial()) return with_placed(lowering, at, before, names);
    if (at.partial.empty())
        return at.loop().level == "micro" ? inside_or_at_border(lowering, at, before, names) : with_placed(lowering, at, before, names);
    const std::vector<NarrowDim> narrow = narrow_dims(at, before);
    Scope scope = before;
    scope.versions *= versions_of(narrow);
    Cursor full = at, tail = at;
    full.partial.clear(), tail.partial.clear();
    Expr all = constant_int(DType::boolean, 1);
    for (const std::string &d : at.partial) {
        Piece &p = full.pieces[d];
        all = all && simplify(p.lo + p.size <= p.limit, scope.facts);
        p.padded = false;
    }
    if (all.is_constant(0)) return narrow_tile(lowering, tail, scope, names, narrow, 0);
    if (all.is_constant(1)) return inside_or_at_border(lowering, full, scope, names);
    tail.at_border = !needs_no_guards(lowering, full, scope).is_constant();
    return versions(
        all, scope, names, [&](const Scope &inside) { return inside_or_at_border(lowering, full, inside, names); },
        [&](const Scope &inside) { return narrow_tile(lowering, tail, inside, names, narrow, 0); });
}

}  // namespace tessera

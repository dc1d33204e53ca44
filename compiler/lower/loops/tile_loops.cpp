#include "compiler/lower/loops/tile_loops.h"

#include <algorithm>
#include <numeric>

#include "algorithms/index/prove.h"
#include "compiler/lower/context/loop.h"
#include "compiler/lower/context/mapping.h"
#include "compiler/lower/loops/point_loops.h"
#include "compiler/lower/loops/ring.h"
#include "compiler/lower/loops/versions.h"

namespace tessera {

// Tiles as far as they are full, then point by point.
static Built full_tiles(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, int64_t tile) {
    const Piece &p = at.pieces.at(at.loop().dim);
    const Expr full = simplify(p.size / Expr(tile), scope.facts);
    const Expr done = simplify(full * Expr(tile), scope.facts);
    if (full.is_constant(0)) return points_left(lowering, at, scope, names, done, tile - 1);
    Scope inside = scope;
    inside.depth++;
    const std::string v = open_loop(lowering, at, inside, names);
    inside.facts.set(v, Expr(0), full - 1);
    Cursor cut = at;
    Piece &piece = cut.pieces[at.loop().dim];
    piece.lo = simplify(p.lo + (full.is_constant(1) ? Expr(0) : variable(v)) * Expr(tile), inside.facts);
    piece.size = piece.max_size = Expr(tile);
    Built built = loop_of(v, full, kind_at(lowering, at), inside_loop(lowering, cut, inside, names));
    built += points_left(lowering, at, after_loop(at, scope), names, done, tile - 1);
    return built;
}

Built over_tiles(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, int64_t tile) {
    const StageNest &nest = *at.nest;
    const LoopName &loop = at.loop();
    const Piece &p = at.pieces.at(loop.dim);
    // Along computed positions a tile is what an iteration owns, and no point of it is a point of the register tile.
    const bool is_owned = !is_spatial(at.stage(), loop.dim) && !folds_over(at.stage(), loop.dim);
    const bool is_last = !is_owned && std::none_of(nest.loops.begin() + static_cast<std::ptrdiff_t>(at.position) + 1, nest.loops.end(),
                                                   [&](const LoopName &l) { return l.dim == loop.dim; });
    // What warps fold is whole steps, with zeros past the end.
    const bool has_zeros = is_by_warps(nest.step) && folds_over(at.stage(), loop.dim);
    const int64_t unit = is_last ? lowering.mapping->tile_unit(nest, loop.dim) : has_zeros ? group_of(nest.step) : 1;
    if (p.size.is_constant() && p.size->value.integer < tile)
        tile = std::max<int64_t>(unit, (p.size->value.integer + unit - 1) / unit * unit);
    const bool whole_tiles = is_multiple(p.size, tile, scope.facts);
    const auto tail = nest.knobs.tail.find(loop.dim);
    if (is_last && !whole_tiles && tail != nest.knobs.tail.end() && tail->second == Tail::loop)
        return full_tiles(lowering, at, scope, names, tile);
    // A slice of a fold, around its accumulators. It runs even when there is nothing to fold.
    const bool is_slice = is_fold(at.stage()) && at.position < nest.fold_at && folds_over(at.stage(), loop.dim) && !scatters(at.stage());
    Expr count = simplify((p.size + Expr(tile - 1)) / Expr(tile), scope.facts);
    if (is_slice) count = simplify(max(count, Expr(1)), scope.facts);
    if (count.is_constant(0)) return {};
    if (is_last && lowering.mapping->runs_once(p, tile, scope.facts)) count = Expr(1);
    Scope inside = scope;
    const std::string v = open_loop(lowering, at, inside, names);
    const bool once = count.is_constant(1);
    inside.facts.set(v, Expr(0), once ? Expr(0) : count - 1);
    inside.depth++;
    const Bounds &facts = inside.facts;
    const Expr start = once ? Expr(0) : variable(v) * Expr(tile);
    Cursor cut = at;
    if (is_slice && !once) cut.fold.earlier.push_back(variable(v));
    Piece &piece = cut.pieces[loop.dim];
    piece.lo = simplify(p.lo + start, facts);
    if (p.cut_by == 0 && !p.cut_from.defined() && !p.padded) piece.cut_from = p.size;
    if (!once) piece.cut_by = std::gcd(p.cut_by, tile);
    // A fold of nothing has one tile, which is empty.
    const bool may_be_empty = is_slice && !prove(p.size >= Expr(1), facts);
    auto around = [&](Built body) {
        const LoopKind kind = kind_at(lowering, at);
        const Slices slices = slices_at(at);
        if (slices.stages == 1 || once) return loop_of(v, count, kind, std::move(body));
        if (kind != LoopKind::serial)
            throw UserError("schedule.pack",
                            at.stage().name + ": a copy in several stages at '" + loop.text() +
                                "', each of whose iterations is a block's; expected a loop that a block goes through. Pack "
                                "it at 'k', or delete 'stages' (null).");
        return Built(in_ring(v, count, slices.stages, slices.has_slots, std::move(body.body), names), body.has_border_version);
    };
    if (is_last || has_zeros || (whole_tiles && !may_be_empty)) {
        piece.size = piece.max_size = Expr(tile);
        if (!whole_tiles) {
            piece.padded = true, piece.zeros = has_zeros, piece.since = inside.depth;
            piece.limit = limit_in(p, facts);
            cut.partial.insert(loop.dim);
        }
        return around(inside_loop(lowering, cut, inside, names));
    }
    Expr left_over = simplify(min(Expr(tile), (is_slice ? p.size : inhabited(p.size)) - start), facts);
    if (is_slice) left_over = simplify(max(left_over, Expr(0)), facts);
    piece.max_size = p.max_size.is_constant() && p.max_size->value.integer < tile ? p.max_size : Expr(tile);
    if (left_over.is_constant()) {
        piece.size = left_over;
        return around(inside_loop(lowering, cut, inside, names));
    }
    const std::string size = names.unique(v + ".size");
    inside.facts.set(size, Expr(is_slice ? 0 : 1), Expr(tile));
    // That the loop runs is known inside it only.
    if (!is_slice) inside.facts.assume(variable(size) <= simplify(inhabited(p.size) - start, facts));
    piece.size = variable(size);
    return around(in_let(size, left_over, inside_loop(lowering, cut, inside, names)));
}

}  // namespace tessera

// What comes next in a nest: the one place that knows every kind of loop and body (build.h).
#include "compiler/lower/body/fold_body.h"
#include "compiler/lower/body/fold_nest.h"
#include "compiler/lower/body/map_body.h"
#include "compiler/lower/body/prefetches.h"
#include "compiler/lower/body/scatter_body.h"
#include "compiler/lower/context/build.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/live_part.h"
#include "compiler/lower/context/stage_nest.h"
#include "compiler/lower/loops/point_loops.h"
#include "compiler/lower/loops/ring.h"
#include "compiler/lower/loops/tile_loops.h"
#include "compiler/lower/loops/vector_loops.h"
#include "compiler/lower/place/carries.h"
#include "support/containers/alternatives.h"
#include "support/text/error.h"

namespace tessera {

// What a stage computes at a register tile.
static Built innermost(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    TileBody body = prefetches(lowering, at, scope, names);
    append(body, std::visit(Overloaded{
                                [&](const Map &) { return map_body(lowering, at, scope, names); },
                                [&](const Reduce &) {
                                    return scatters(at.stage()) ? scatter_body(lowering, at, scope, names)
                                                                : fold_body(lowering, at, scope, names);
                                },
                                [&](const Scan &) { return fold_body(lowering, at, scope, names); },
                            },
                            at.stage().body));
    return body;
}

static Built one_loop(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const LoopName &loop = at.loop();
    const StageNest &nest = *at.nest;
    if (const auto tile = tile_of(nest.knobs, loop)) return over_tiles(lowering, at, scope, names, *tile);
    if (slices_at(at).stages > 1)
        throw UserError("schedule.pack", at.stage().name + ": a copy in several stages at '" + loop.text() +
                                             "', which goes point by point; expected a loop over slices. Pack it at 'k', or delete "
                                             "'stages' (null).");
    const bool is_inside_fold = is_fold(at.stage()) && at.position >= nest.fold_at;
    if (const auto lanes = lanes_along(nest.step, loop.dim); lanes && !is_inside_fold)
        return over_vectors(lowering, at, scope, names, *lanes);
    return over_points(lowering, at, scope, names);
}

// A minimum has the facts of its sides, so that nobody need look at cases.
static void assume_minimum(const Expr &variable, const Expr &value, Bounds &facts) {
    Expr most;
    if (value.is_operation(Op::min))
        for (const Expr &side : value->args)
            if (!has_load(side)) most = side;
    if (!most.defined())
        if (const auto range = constant_range(value, facts)) most = Expr(range->second);
    facts.set(variable->name, prove(Expr(0) <= value, facts) ? Expr(0) : Expr(), most);
}

// The loop at the cursor, whose dim no loop has cut so far: over all of it, or as far as the fold's condition can hold. What data says of
// that, and a beginning, have names, so that they are computed once.
static Built first_loop(const Lowering &lowering, const Cursor &before, const Scope &scope, Names &names) {
    Cursor at = before;
    const std::string &dim = at.loop().dim;
    const Piece all = whole_at_loop(lowering, scope, at.stage(), dim, at.pieces);
    Scope inside = scope;
    std::vector<std::pair<std::string, Expr>> named;
    for (const Expr &data : data_of_live_part(lowering, scope, at.stage(), dim, at.pieces)) {
        const Expr value = in_names_of_limits(data, inside);
        if (!has_load(value)) continue;
        named.emplace_back(names.unique(lowering.plain(dim) + ".live"), value);
        const Expr name = variable(named.back().first);
        assume_minimum(name, value, inside.facts);
        inside.limits.emplace_back(value, name);
    }
    Limits live = live_part(lowering, inside, at.stage(), dim, at.pieces);
    auto name = [&](const char *suffix, const Expr &value, const Expr &most) {
        named.emplace_back(names.unique(lowering.plain(dim) + suffix), value);
        inside.facts.set(named.back().first, Expr(0), most);
        return variable(named.back().first);
    };
    const bool begins_later = live.first.defined() && !live.first.is_constant();
    if (begins_later) {
        live.first = name(".first", live.first, all.size);
        inside.facts.assume(live.first % Expr(grid_along(lowering, at.stage(), dim)) == Expr(0));
    }
    Piece piece = between(all, live, inside.facts);
    const bool is_data = has_load(piece.size) || (!named.empty() && piece.size.is_operation(Op::max));
    if (begins_later || (live.end.defined() && is_data))
        piece.size = name(".size", piece.size, simplify(all.size - piece.lo, inside.facts));
    at.pieces[dim] = piece;
    Built built = with_carries(lowering, at, inside, names, [&](const Scope &around) { return one_loop(lowering, at, around, names); });
    for (auto it = named.rbegin(); it != named.rend(); ++it) built = in_let(it->first, it->second, std::move(built));
    return built;
}

static Built next_loop(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    if (!at.pieces.count(at.loop().dim)) return first_loop(lowering, at, scope, names);
    return with_carries(lowering, at, scope, names, [&](const Scope &inside) { return one_loop(lowering, at, inside, names); });
}

Built build(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    if (at.position == at.nest->fold_at && !at.fold.begun && is_fold(at.stage()) && !scatters(at.stage()))
        return build_fold(lowering, at, scope, names);
    if (at.position == at.nest->loops.size()) return innermost(lowering, at, scope, names);
    return next_loop(lowering, at, scope, names);
}

}  // namespace tessera

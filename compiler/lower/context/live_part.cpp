#include "compiler/lower/context/live_part.h"

#include <numeric>

#include "algorithms/index/prove.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/tile_step.h"

namespace tessera {

// A dim of at most so many points is not worth limiting by a fold's condition.
static constexpr int64_t short_piece = 256;

int64_t grid_along(const Lowering &lowering, const Stage &stage, const std::string &dim) {
    const Knobs &knobs = lowering.knobs(stage.name);
    int64_t grid = group_of(step_of(stage, knobs));
    auto add = [&](const Extents &tiles) {
        if (auto tile = tiles.find(dim); tile != tiles.end()) grid = std::lcm(grid, tile->second);
    };
    add(knobs.block), add(knobs.k), add(knobs.micro);
    for (const auto &[name, tiles] : knobs.levels) add(tiles);
    return grid;
}

// The condition by which a loop over the whole dim is limited; undefined where it is not.
static Expr limiting(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim, const Piece &whole) {
    auto *reduce = std::get_if<Reduce>(&stage.body);
    if (!reduce || !reduce->where.defined() || !whole.size.defined() || is_spatial(stage, dim)) return {};
    // A loop over pieces is limited, however few they are; inside a short piece a limit would cost more in index arithmetic than it saves.
    const Expr where = resolve(lowering, scope, reduce->where);
    const bool is_short = whole.max_size.is_constant() && whole.max_size->value.integer <= short_piece;
    return is_short && step_in(where, dim) <= 1 ? Expr() : where;
}

std::vector<Expr> data_of_live_part(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim,
                                    const Pieces &outer) {
    const Expr where = limiting(lowering, scope, stage, dim, whole(lowering, scope, dim, outer));
    return where.defined() ? data_in_limits(lowering, scope, where, dim, outer) : std::vector<Expr>();
}

Limits live_part(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim, const Pieces &outer) {
    const Piece p = whole(lowering, scope, dim, outer);
    const Expr where = limiting(lowering, scope, stage, dim, p);
    if (!where.defined()) return {};
    std::optional<Limits> may = where_may_hold(lowering, scope, where, dim, outer);
    if (!may) return {};
    const auto most = constant_range(p.max_size, scope.facts);
    if (most && most->second <= short_piece && step_in(where, dim) <= 1) may->first = Expr();
    if (may->first.defined()) {
        const Expr grid = grid_along(lowering, stage, dim), first = simplify(min(max(may->first, Expr(0)), p.size), scope.facts);
        may->first = simplify(first / grid * grid, scope.facts);
        if (may->first.is_constant(0)) may->first = Expr();
    }
    return *may;
}

// min(size, end) without the sides of the size that the end is never beyond.
static Expr no_more_than(const Expr &size, const Expr &end, const Bounds &facts) {
    if (prove(end <= size, facts)) return end;
    if (!size.is_operation(Op::min)) return min(size, end);
    for (size_t side : {0, 1})
        if (prove(end <= size->args[side], facts)) return no_more_than(size->args[1 - side], end, facts);
    return min(size, end);
}

Piece between(const Piece &whole, const Limits &limits, const Bounds &facts) {
    Piece p = whole;
    if (!limits.first.defined()) {
        if (limits.end.defined()) p.size = simplify(max(no_more_than(p.size, limits.end, facts), Expr(0)), facts);
        return p;
    }
    p.lo = limits.first;
    // Written so that it is seen to be inside of the dim.
    Expr left_over = simplify(p.size - p.lo, facts);
    if (limits.end.defined()) left_over = min(simplify(limits.end - p.lo, facts), left_over);
    p.size = max(left_over, Expr(0));
    return p;
}

Piece whole_under_where(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim, const Pieces &outer) {
    Limits limits = live_part(lowering, scope, stage, dim, outer);
    if (limits.first.defined() && has_load(limits.first)) limits.first = Expr();
    return between(whole(lowering, scope, dim, outer), limits, scope.facts);
}

}  // namespace tessera

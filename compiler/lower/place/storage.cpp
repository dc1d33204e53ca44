#include "compiler/lower/place/storage.h"

#include <algorithm>

#include "algorithms/index/prove.h"
#include "support/text/error.h"

namespace tessera {

Stored stored_argument(const Lowering &lowering, const Scope &scope, const Tensor &tensor, bool padded) {
    Stored stored;
    stored.padded = padded, stored.exact = true;
    stored.buffer = {tensor.name, tensor.dtype, {}, tensor.role == Role::constant ? Space::constant : Space::argument};
    for (const std::string &d : tensor.dims) {
        stored.buffer.extents.push_back(extent_of(lowering, scope, d));
        stored.origin.push_back(Expr(0));
    }
    stored.dims = tensor.dims;
    return stored;
}

// The most that the size can be whatever data and parameters say: who asks how much storage a call needs has neither. Undefined where
// nothing is known.
static Expr most_for_any_data(const Expr &size, const Bounds &facts) {
    std::set<std::string> unknown;
    const Expr named = rewrite(size, [&](const Expr &e) -> Expr {
        if (e.kind() != ExprKind::cast || !is_data(e)) return {};
        return variable(*unknown.insert("data " + std::to_string(unknown.size())).first);
    });
    return is_data(named) ? Expr() : upper_bound(named, facts, unknown);
}

static Expr most_without_data(const Lowering &lowering, const Scope &scope, const std::string &dim, const Expr &size) {
    const Expr most = most_for_any_data(size, scope.facts);
    return most.defined() ? most : extent_limit(lowering, scope, dim);
}

Stored stored_result(const Lowering &lowering, const Scope &scope, const Tensor &tensor) {
    Stored stored = stored_argument(lowering, scope, tensor, false);
    stored.buffer.space = Space::workspace;
    stored.exact = false;
    for (size_t i = 0; i < tensor.dims.size(); i++) {  // there is room before data tells how much is needed
        Expr &extent = stored.buffer.extents[i];
        if (!is_data(extent)) continue;
        extent = most_without_data(lowering, scope, tensor.dims[i], extent);
        if (!extent.defined())
            throw UserError("schedule.call", "the call's result '" + tensor.name + "' has the dim '" + tensor.dims[i] +
                                                 "', whose extent is data without a bound; declare it by counted_dim, which has one.");
    }
    return stored;
}

bool starts_aligned(const Knobs &k, const std::string &dim, int64_t unit) {
    auto is_whole = [&](const Extents &tiles) {
        auto it = tiles.find(dim);
        return it == tiles.end() || it->second % unit == 0;
    };
    return is_whole(k.block) && std::all_of(k.levels.begin(), k.levels.end(), [&](auto &level) { return is_whole(level.second); });
}

static Expr round_up(const Expr &e, int64_t unit) { return unit == 1 ? e : (e + Expr(unit - 1)) / Expr(unit) * Expr(unit); }

// The extents of a buffer for so much of each dim.
static std::vector<Expr> extents_in(const std::vector<LayoutAxis> &layout, const Stage &stage, const Tensor &result,
                                    const std::map<std::string, Expr> &sizes, const Bounds &facts) {
    std::vector<Expr> extents;
    if (layout.empty())
        for (const std::string &d : result.dims) extents.push_back(sizes.at(d));
    for (const LayoutAxis &axis : layout) {
        if (!sizes.count(axis.dim))
            throw UserError("schedule.layout", stage.name + ": the layout names dim '" + axis.dim + "', and '" + result.name +
                                                   "' has dims " + join(result.dims) + ".");
        Expr size = sizes.at(axis.dim);
        if (axis.factor == 0) extents.push_back(size);
        else if (axis.positions()) extents.push_back(Expr(axis.positions()));
        else extents.push_back(simplify((size + Expr(axis.factor - 1)) / Expr(axis.factor), facts));
    }
    return extents;
}

static Stored stored_pieces(const Lowering &lowering, const Scope &scope, const Stage &stage, const Knobs &k, const Tensor &result,
                            const Pieces &pieces, const std::string &name) {
    Stored stored;
    stored.dims = result.dims;
    stored.depth = scope.depth;
    if (!stage.rows.empty()) stored.by_points = &stage;
    stored.layout = k.layout;
    std::map<std::string, Expr> sizes;
    for (const std::string &d : result.dims) {
        Piece p = pieces.count(d) ? pieces.at(d) : whole(lowering, scope, d, {});
        if (!p.max_size.defined() || !variables_in(p.max_size).empty())
            throw UserError("schedule.place",
                            stage.name + ": how much of dim '" + d +
                                "' is needed at its place has no bound that "
                                "is free of loop variables, so no storage can be set aside; place it at root or further in.");
        if (is_data(p.max_size)) {
            p.max_size = most_without_data(lowering, scope, d, p.max_size);
            if (!p.max_size.defined())
                throw UserError("schedule.place",
                                stage.name + ": it has the dim '" + d +
                                    "', whose extent is data without a bound, so no storage can be set aside; declare the "
                                    "dim by counted_dim, which has one, or inline the stage.");
        }
        stored.origin.push_back(scope.depth == 0 ? Expr(0) : p.lo);
        if (p.whole) stored.whole.insert(d);
        const int64_t unit = lowering.mapping->storage_unit(k, d, p);
        sizes[d] = simplify(starts_aligned(k, d, unit) ? round_up(p.max_size, unit) : p.max_size + Expr(unit - 1), scope.facts);
    }
    stored.buffer = {name, result.dtype, extents_in(k.layout, stage, result, sizes, scope.facts), Space::workspace};
    return stored;
}

Stored store_root(const Lowering &lowering, const Scope &scope, const Stage &stage, const Tensor &result) {
    Tensor kept = result;
    for (const Tensor &t : results_of(stage))
        if (t.name == result.name) kept = t;
    Pieces pieces;
    for (const std::string &d : kept.dims) pieces[d] = whole(lowering, scope, d, {});
    Stored stored = stored_pieces(lowering, scope, stage, lowering.knobs(stage.name), kept, pieces, kept.name);
    stored.by_points = nullptr;
    stored.exact |= !stage.rows.empty();  // past the end of one segment is the next
    return stored;
}

Tensor carried(const Tensor &result) {
    Tensor carry = result;
    carry.name = "carry of " + result.name;  // no tensor has such a name
    return carry;
}

bool goes_on(const Lowering &lowering, const Scope &scope, const Stage &stage) {
    const size_t first = lowering.facts(stage).live.stepped.front();
    return scope.find(carried(lowering.results(stage)[first]).name) != nullptr;
}

Stored store_placed(const Lowering &lowering, const Scope &scope, const Stage &stage, const Knobs &knobs, const Tensor &result,
                    const Pieces &pieces, const std::string &suffix, Names &names) {
    Stored stored = stored_pieces(lowering, scope, stage, knobs, result, pieces, names.unique(result.name + suffix));
    stored.buffer.space = lowering.mapping->near_space(stored.buffer);
    return stored;
}

bool store_is_guarded(const Scope &scope, const Tensor &result) { return scope.at(result.name).exact; }

bool has_room(const Lowering &lowering, const Scope &scope, const Stored &where, const std::vector<Expr> &index,
              const std::map<std::string, Expr> &at) {
    if ((where.buffer.space == Space::argument && !where.padded) || where.buffer.space == Space::constant) return false;
    const std::vector<Expr> axes = locate_at(lowering, scope, where, index, at);
    for (size_t i = 0; i < axes.size(); i++)
        if (!prove(axes[i] >= Expr(0), scope.facts) || !prove(axes[i] < where.buffer.extents[i], scope.facts)) return false;
    return true;
}

}  // namespace tessera

#include "compiler/lower/body/tile_points.h"

#include <algorithm>

#include "compiler/lower/context/built.h"
#include "compiler/lower/context/extents.h"
#include "compiler/rewrite/choice.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// The loops over a tile's points, which come dim by dim, and the point that they go to.
class TileLoops {
public:
    TileLoops(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, bool guarded)
        : inside(scope), lowering_(lowering), at_(at), names_(names), guarded_(guarded), team_(lowering.mapping->team(at)) {
        if (team_) name_threads(*team_, lowering, inside, names), point.thread = team_->thread;
    }

    // A dim of the stage. `by_vectors`: lanes are taken along it; otherwise a part's own dim takes them, and this one is looped over.
    void add(const std::string &dim, bool by_vectors);
    // A dim of the fold's part alone.
    void add_own(const std::string &dim);
    // Each of `steps` in the vector loop, all of them together in the others.
    TileBody around(const TileBody &steps) const;

    Point point;
    Expr lane_guard;
    Scope inside;

private:
    struct Axis {
        std::string variable;
        Expr count;
        LoopKind kind;
        bool written_out;  // a statement for each iteration, which has only what is chosen there
    };

    Expr axis(const std::string &dim, const char *suffix, const Expr &count, LoopKind kind, bool written_out);
    Expr lanes(const std::string &dim, int64_t count);
    Expr runs(const std::string &dim);
    Expr vector(const std::string &dim, int64_t width);

    const Lowering &lowering_;
    const Cursor &at_;
    Names &names_;
    const bool guarded_;
    std::optional<Team> team_;
    std::vector<Axis> axes_;
    std::optional<Axis> lane_;
    std::vector<Expr> guards_ = {Expr()};  // guards_[i] is known inside axes_[0 … i-1]
};

// A further loop, inside those so far; gives its variable.
Expr TileLoops::axis(const std::string &dim, const char *suffix, const Expr &count, LoopKind kind, bool written_out) {
    axes_.push_back({names_.unique(lowering_.plain(dim) + suffix), count, kind, written_out});
    guards_.push_back(Expr());
    inside.facts.set(axes_.back().variable, Expr(0), count - 1);
    return variable(axes_.back().variable);
}

// The vector loop, innermost.
Expr TileLoops::lanes(const std::string &dim, int64_t count) {
    lane_ = Axis{names_.unique(lowering_.plain(dim) + ".lane"), Expr(count), LoopKind::vector, false};
    inside.facts.set(lane_->variable, Expr(0), Expr(count - 1));
    return variable(lane_->variable);
}

// The first point of a run.
Expr TileLoops::runs(const std::string &dim) {
    auto runs = at_.runs.find(dim);
    if (runs == at_.runs.end()) return Expr(0);
    return axis(dim, ".run", Expr(runs->second.count), LoopKind::unrolled, true) * Expr(runs->second.length);
}

// The point within a vector of `width`. Lanes that compute different things alternately are a vector of each.
Expr TileLoops::vector(const std::string &dim, int64_t width) {
    int64_t ways = choice_of(at_.stage(), dim).remainders;
    if (width % ways) ways = 1;
    Expr inner = 0;
    if (width > ways) {
        inner = lanes(dim, width / ways);
        point.vector_dim = dim;
    }
    if (ways > 1) {
        Expr way = axis(dim, ".u", Expr(ways), LoopKind::unrolled, true);
        inner = inner * Expr(ways) + way;
    }
    return inner;
}

void TileLoops::add(const std::string &d, bool by_vectors) {
    const Piece &p = at_.pieces.at(d);
    require(p.size.is_constant(), "a register tile has constant extents (" + at_.stage().name + "." + d + ")");
    const int64_t size = p.size->value.integer;
    const int64_t stated = at_.runs.count(d) ? size : lanes_along(at_.nest->step, d).value_or(0);
    const bool is_vector = by_vectors && stated > 0 && size % stated == 0 && size >= stated && point.vector_dim.empty();
    const int64_t width = is_vector ? stated : 1, parts = team_ ? team_->of(d) : 1, count = size / width / parts;
    const Expr run = runs(d);
    Expr outer = 0;
    if (count > 1) {
        const LoopKind kind = by_vectors ? LoopKind::unrolled : LoopKind::serial;
        const bool is_chosen = by_vectors && width == 1 && parts == 1 && choice_of(at_.stage(), d).by_index;
        outer = axis(d, ".u", Expr(count), kind, is_chosen);
    }
    const Expr inner = width > 1 ? vector(d, width) : Expr(0);
    point.own[d] = simplify(outer * Expr(width) + inner, inside.facts);
    // Neighbouring threads take neighbouring vectors.
    if (parts > 1) outer = outer * Expr(parts) + team_->digits.at(d);
    point.at[d] = simplify(p.lo + run + outer * Expr(width) + inner, inside.facts);
    if (!guarded_ || !p.padded) return;
    const Expr is_inside = point.at[d] < p.limit;
    if (point.vector_dim == d) lane_guard = is_inside;
    else guards_.back() = guards_.back().defined() ? guards_.back() && is_inside : is_inside;
}

void TileLoops::add_own(const std::string &d) {
    const Expr extent = extent_of(lowering_, inside, d);
    const int64_t width = point.vector_dim.empty() ? unit(at_.nest->step, d) : 1;
    const Expr count = simplify((extent + Expr(width - 1)) / Expr(width), inside.facts);
    const Expr outer = axis(d, ".e", count, LoopKind::serial, false);
    point.at[d] = outer;
    if (width == 1) return;
    const Expr inner = lanes(d, width);
    point.vector_dim = d;
    point.at[d] = simplify(outer * Expr(width) + inner, inside.facts);
    if (simplify(extent % Expr(width), inside.facts).is_constant(0)) return;
    point.padded[d] = {Expr(0), Expr(width), Expr(width), true, extent, inside.depth + 1};
    if (guarded_) lane_guard = point.at[d] < extent;
}

TileBody TileLoops::around(const TileBody &steps) const {
    TileBody body;
    for (const auto &step : steps) append(body, lane_ ? in_loop(lane_->variable, lane_->count, lane_->kind, {step}) : TileBody{step});
    for (size_t i = axes_.size() + 1; i-- > 0;) {
        if (guards_[i].defined()) body = in_guard(guards_[i], std::move(body));
        if (i == 0) break;
        const Axis &axis = axes_[i - 1];
        if (!axis.written_out) {
            body = in_loop(axis.variable, axis.count, axis.kind, std::move(body));
            continue;
        }
        TileBody all;
        for (int64_t k = 0; k < axis.count->value.integer; k++) append(all, in_let(axis.variable, Expr(k), body));
        body = std::move(all);
    }
    return team_ ? by_threads(*team_, std::move(body)) : body;
}

}  // namespace

TileBody over_tile(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const std::vector<std::string> &extra,
                   bool guarded, const PointBody &make) {
    TileLoops loops(lowering, at, scope, names, guarded);
    const bool own_lanes =
        std::any_of(extra.begin(), extra.end(), [&](const auto &d) { return lanes_along(at.nest->step, d).has_value(); });
    for (const std::string &d : lanes_last(at)) loops.add(d, !own_lanes);
    for (const std::string &d : extra) loops.add_own(d);
    return loops.around({make(loops.point, loops.lane_guard, loops.inside)});
}

TileBody over_tile_in_steps(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const PointSteps &make) {
    TileLoops loops(lowering, at, scope, names, false);
    for (const std::string &d : lanes_last(at)) loops.add(d, true);
    return loops.around(make(loops.point, loops.inside));
}

std::vector<Expr> tile_index(const Cursor &at, const Scope &inside, const Part *part, const Point &point) {
    std::vector<Expr> index;
    if (!point.thread.empty() && (!part || part->dims.empty())) {
        index.push_back(variable(point.thread));
        for (const std::string &d : tile_dims(at)) index.push_back(point.own.at(d));
        return index;
    }
    for (const std::string &d : tile_dims(at)) index.push_back(simplify(point.at.at(d) - at.pieces.at(d).lo, inside.facts));
    if (part)
        for (const std::string &d : part->dims) index.push_back(point.at.at(d));
    if (index.empty()) index.push_back(Expr(0));
    return index;
}

Buffer value_buffer(const Lowering &lowering, const Cursor &at, const Scope &scope, const std::string &suffix, DType dtype, Names &names) {
    Buffer b{names.unique(at.stage().name + suffix), dtype, {}, Space::registers};
    const std::optional<Team> team = lowering.mapping->team(at);
    if (team) b.extents.push_back(Expr(team->threads));
    for (const std::string &d : tile_dims(at)) {
        const Expr &size = at.pieces.at(d).size;
        b.extents.push_back(team ? simplify(size / Expr(team->of(d)), scope.facts) : size);
    }
    if (b.extents.empty()) b.extents.push_back(Expr(1));
    return b;
}

Buffer part_buffer(const Lowering &lowering, const Cursor &at, const Scope &scope, size_t position, const std::string &suffix,
                   Names &names) {
    const std::vector<Part> &parts = monoid_of(at.stage()).parts;
    const Part &part = parts[position];
    Buffer b = value_buffer(lowering, at, scope, (parts.size() > 1 ? "." + part.name : "") + suffix, part.identity.type, names);
    if (part.dims.empty()) {
        b.space = lowering.mapping->register_space(b);
        return b;
    }
    b.extents.clear();
    for (const std::string &d : tile_dims(at)) b.extents.push_back(at.pieces.at(d).size);
    for (const std::string &d : part.dims) {
        const Expr lanes = unit(at.nest->step, d);
        b.extents.push_back(simplify((extent_of(lowering, scope, d) + lanes - 1) / lanes * lanes, scope.facts));
    }
    b.space = lowering.mapping->near_space(b);
    return b;
}

}  // namespace tessera

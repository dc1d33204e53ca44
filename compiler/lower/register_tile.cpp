// Register tiles: the loops over their points, what an expression is at one, and the memory that holds a value for each.
#include <algorithm>

#include "compiler/lower/nest_state.h"
#include "compiler/rewrite/choice.h"
#include "support/text/error.h"

namespace tessera {

static bool is_one(const Expr &e) { return e.is_constant(1); }

TileBody Nests::over_tile(const State &state, const std::vector<std::string> &extra, bool guarded, const Maker &make) {
    struct Axis {
        std::string dim, variable;
        Expr count;
        LoopKind kind;
        bool written_out = false;  // a statement for each iteration, which has only what is chosen there
    };
    std::vector<Axis> axes;
    Axis lane;
    Point point;
    Expr lane_guard;
    std::vector<Expr> guards(1, Expr());  // guards[i] is known inside axes[0 … i-1]
    Team team;
    if (target.is_gpu()) team = team_of(state), name_threads(team), point.thread = team.thread;
    // A part's own dim with lanes takes the vectors; the tile's dims are then looped over.
    auto has_lanes = [&](const std::string &d) { return state.knobs->vector.count(d) > 0; };
    bool inner_lanes = std::any_of(extra.begin(), extra.end(), has_lanes);
    for (const std::string &d : lanes_last(state)) {
        const Piece &p = state.pieces.at(d);
        require(p.size.is_constant(), "a register tile has constant extents (" + state.stage->name + "." + d + ")");
        int64_t size = p.size->value.integer;
        Expr outer = 0, inner = 0;
        auto lanes = state.knobs->vector.find(d);
        auto runs = state.runs.find(d);
        int64_t stated = runs != state.runs.end() ? size : lanes != state.knobs->vector.end() ? lanes->second : 0;
        bool vector = !inner_lanes && stated > 0 && size % stated == 0 && size >= stated && point.vector_dim.empty();
        int64_t width = vector ? stated : 1, parts = team.of(d);
        int64_t count = size / width / parts;
        Expr run = 0;
        if (runs != state.runs.end()) {
            std::string v = unique(plain(d) + ".run");
            axes.push_back({d, v, Expr(runs->second.count), LoopKind::unrolled, true});
            guards.push_back(Expr());
            facts.set(v, Expr(0), Expr(runs->second.count - 1));
            run = variable(v) * Expr(runs->second.length);
        }
        if (count > 1) {
            std::string v = unique(plain(d) + ".u");
            LoopKind kind = inner_lanes ? LoopKind::serial : LoopKind::unrolled;
            bool chosen = kind == LoopKind::unrolled && width == 1 && parts == 1 && choice_of(*state.stage, d).by_index;
            axes.push_back({d, v, Expr(count), kind, chosen});
            guards.push_back(Expr());
            facts.set(v, Expr(0), Expr(count - 1));
            outer = variable(v);
        }
        if (width > 1) {
            // Lanes that compute different things alternately are a vector of each.
            int64_t ways = choice_of(*state.stage, d).remainders;
            if (width % ways) ways = 1;
            if (width > ways) {
                std::string v = unique(plain(d) + ".lane");
                lane = {d, v, Expr(width / ways), LoopKind::vector};
                facts.set(v, Expr(0), Expr(width / ways - 1));
                inner = variable(v);
            }
            if (ways > 1) {
                std::string way = unique(plain(d) + ".u");
                axes.push_back({d, way, Expr(ways), LoopKind::unrolled, true});
                guards.push_back(Expr());
                facts.set(way, Expr(0), Expr(ways - 1));
                inner = inner * Expr(ways) + variable(way);
            }
        }
        if (vector && lane.dim == d) point.vector_dim = d;
        point.own[d] = simplify(outer * Expr(width) + inner, facts);
        // Neighbouring threads take neighbouring vectors.
        if (parts > 1) outer = outer * Expr(parts) + team.digits.at(d);
        point.at[d] = simplify(p.lo + run + outer * Expr(width) + inner, facts);
        if (!guarded || !p.padded) continue;
        Expr inside = point.at[d] < p.limit;
        if (point.vector_dim == d) lane_guard = inside;
        else guards.back() = guards.back().defined() ? guards.back() && inside : inside;
    }
    for (const std::string &d : extra) {
        std::string v = unique(plain(d) + ".e");
        Expr n = extent_of(d);
        int64_t width = has_lanes(d) && point.vector_dim.empty() ? state.knobs->vector.at(d) : 1;
        Expr count = simplify((n + Expr(width - 1)) / Expr(width), facts);
        facts.set(v, Expr(0), count - 1);
        axes.push_back({d, v, count, LoopKind::serial});
        guards.push_back(Expr());
        point.at[d] = variable(v);
        if (width == 1) continue;
        lane = {d, unique(plain(d) + ".lane"), Expr(width), LoopKind::vector};
        facts.set(lane.variable, Expr(0), Expr(width - 1));
        point.vector_dim = d;
        point.at[d] = simplify(variable(v) * Expr(width) + variable(lane.variable), facts);
        if (simplify(n % Expr(width), facts).is_constant(0)) continue;
        point.padded[d] = {Expr(0), Expr(width), Expr(width), true, n, state.depth + 1};
        if (guarded) lane_guard = point.at[d] < n;
    }
    TileBody body = {make(point, lane_guard)};
    if (!lane.variable.empty()) body = {tile_node(Loop{lane.variable, lane.count, lane.kind, std::move(body)})};
    for (size_t i = axes.size() + 1; i-- > 0;) {
        if (guards[i].defined()) body = {tile_node(Guard{guards[i], std::move(body), {}})};
        if (i == 0) break;
        const Axis &axis = axes[i - 1];
        if (!axis.written_out) {
            body = {tile_node(Loop{axis.variable, axis.count, axis.kind, std::move(body)})};
            continue;
        }
        TileBody all;
        for (int64_t k = 0; k < axis.count->value.integer; k++) all.push_back(tile_node(Let{axis.variable, Expr(k), body}));
        body = std::move(all);
    }
    return target.is_gpu() ? by_threads(team, std::move(body)) : body;
}

// An expression of the stage at a point: its dims become loop indices, its loads go to where the tensors are.
Expr Nests::evaluate(const State &state, const Expr &e, const Point &point) const {
    std::map<std::string, Expr> at = point.at;
    for (auto &[dim, piece] : state.pieces)
        if (!at.count(dim) && is_one(piece.size)) at[dim] = piece.lo;
    auto any_padded = [](const Pieces &pieces) {
        return std::any_of(pieces.begin(), pieces.end(), [](const auto &p) { return p.second.padded; });
    };
    const bool padded = any_padded(point.padded) || any_padded(state.pieces);
    // First the loads, inside out, while their indices still speak of dims; loop variables never have a dim's name.
    Expr located = replace_loads(e, [&](const Expr &n) -> Expr {
        auto found = realized.find(n->name);
        if (found == realized.end())
            throw UserError("schedule.place",
                            state.stage->name + ": it loads '" + n->name +
                                "', which is computed inside another stage's "
                                "loops and is not there any more; place the producer at root or at a loop around all its consumers.");
        const Realized &where = found->second;
        size_t rank = where.dims.size();
        std::vector<Expr> index(n->args.begin(), n->args.begin() + rank);
        Expr guard;
        std::map<std::string, Expr> safe = at;
        std::set<std::string> used;
        if (padded)
            for (const Expr &i : index) used.merge(variables_in(i));
        std::optional<bool> roomy;
        for (const std::string &d : used) {
            auto p = point.padded.find(d);
            if (p == point.padded.end()) p = state.pieces.find(d);
            if (p == state.pieces.end() || !p->second.padded) continue;
            // What was realised inside the padded tile has its points to spare.
            bool has_spare = where.depth >= p->second.since;
            for (size_t i = 0; i < rank && has_spare; i++) has_spare = !where.whole.count(where.dims[i]) || !uses_variable(index[i], d);
            if (has_spare) continue;
            // A buffer of ours that has room for the whole tile is read as it is: what lies past the limit ends in points that
            // nobody stores.
            if (!roomy) roomy = has_room(where, index, at);
            if (*roomy) break;
            // Past the limit there is nothing to read. Lanes of a contiguous read are masked; anything else reads the last element instead.
            bool contiguous = d == point.vector_dim && index.back().kind() == ExprKind::variable && index.back()->name == d;
            for (size_t i = 0; i + 1 < rank; i++) contiguous &= !uses_variable(index[i], d);
            if (contiguous) {
                Expr inside = simplify(at.at(d) < p->second.limit, facts);
                guard = guard.defined() ? guard && inside : inside;
            } else {
                safe[d] = min(at.at(d), p->second.limit - 1);
            }
        }
        if (n->guarded) {  // at the point that is read
            Expr inside = at_point(n->args[rank], safe);
            guard = guard.defined() ? guard && inside : inside;
        }
        if (state.where.defined() && !in_bounds(state, index, where)) {
            Expr inside = at_point(state.where, at);
            guard = guard.defined() ? guard && inside : inside;
        }
        std::vector<Expr> axes = locate_at(where, index, safe);
        if (!guard.defined()) return load(where.buffer.name, n.type(), axes);
        return load_or(where.buffer.name, n.type(), axes, guard, n->guarded ? at_point(n->args[rank + 1], at) : constant(n.type(), 0));
    });
    return at_point(located, at);
}

// Whether the indices are inside the tensor wherever the stage's dims are, whatever the fold's condition says.
bool Nests::in_bounds(const State &state, const std::vector<Expr> &index, const Realized &where) const {
    std::set<std::string> used = variables_in(state.where);
    Bounds range = facts;
    for (const std::string &d : used)
        if (algorithm.find_dim(d)) range.set(d, Expr(0), extent_of(d) - 1);
    for (size_t i = 0; i < index.size(); i++) {
        bool concerned = false;
        for (const std::string &name : variables_in(index[i])) {
            concerned |= used.count(name) > 0;
            if (algorithm.find_dim(name)) range.set(name, Expr(0), extent_of(name) - 1);
        }
        if (!concerned) continue;
        Expr e = resolve(index[i]);
        if (!prove(e >= Expr(0), range) || !prove(e < extent_of(where.dims[i]), range)) return false;
    }
    return true;
}

// Whether it is a buffer of ours, or an argument with room, that holds the element at `index` wherever the loops are, limits aside.
bool Nests::has_room(const Realized &where, const std::vector<Expr> &index, const std::map<std::string, Expr> &at) const {
    if ((where.buffer.space == Space::argument && !where.roomy) || where.buffer.space == Space::constant) return false;
    const std::vector<Expr> axes = locate_at(where, index, at);
    for (size_t i = 0; i < axes.size(); i++)
        if (!prove(axes[i] >= Expr(0), facts) || !prove(axes[i] < where.buffer.extents[i], facts)) return false;
    return true;
}

bool Nests::store_is_guarded(const Tensor &result) const {
    // A buffer of ours has room for whole tiles; an argument has not.
    return realized.at(result.name).buffer.space == Space::argument;
}

std::shared_ptr<const TileNode> Nests::store(const Tensor &result, const Point &point, const Expr &value, const Expr &guard, bool copy) {
    const Realized &where = realized.at(result.name);
    std::vector<Expr> index;
    for (const std::string &d : result.dims) index.push_back(point.at.at(d));
    index = locate(where, index);
    if (copy && value.kind() == ExprKind::load) return tile_node(Copy{where.buffer.name, index, value, guard});
    return tile_node(Compute{where.buffer.name, index, value, guard});
}

// The stage's dims, the one with lanes last: its vectors are contiguous in accumulators, and what the other dims
// broadcast is used up before the next is loaded, which keeps it in one register.
std::vector<std::string> Nests::lanes_last(const State &state) const {
    std::vector<std::string> dims = state.stage->dims;
    std::stable_partition(dims.begin(), dims.end(), [&](const std::string &d) { return !state.knobs->vector.count(d); });
    return dims;
}

std::vector<std::string> Nests::tile_dims(const State &state) const {
    std::vector<std::string> dims;
    for (const std::string &d : lanes_last(state))
        if (!is_one(state.pieces.at(d).size)) dims.push_back(d);
    return dims;
}

// The position inside an accumulator: the point relative to the tile's corner, then the part's own dims.
std::vector<Expr> Nests::tile_index(const State &state, const Part *part, const Point &point) const {
    std::vector<Expr> index;
    if (target.is_gpu() && (!part || part->dims.empty())) {
        index.push_back(variable(point.thread));
        for (const std::string &d : tile_dims(state)) index.push_back(point.own.at(d));
        return index;
    }
    for (const std::string &d : tile_dims(state)) index.push_back(simplify(point.at.at(d) - state.pieces.at(d).lo, facts));
    if (part)
        for (const std::string &d : part->dims) index.push_back(point.at.at(d));
    if (index.empty()) index.push_back(Expr(0));
    return index;
}

std::vector<Expr> Nests::register_extents(const State &state) const {
    std::vector<Expr> extents;
    if (target.is_gpu()) {
        Team team = team_of(state);
        extents.push_back(Expr(team.threads));
        for (const std::string &d : tile_dims(state)) extents.push_back(simplify(state.pieces.at(d).size / Expr(team.of(d)), facts));
        return extents;
    }
    for (const std::string &d : tile_dims(state)) extents.push_back(state.pieces.at(d).size);
    if (extents.empty()) extents.push_back(Expr(1));
    return extents;
}

// Room for one part of the fold at each point of the tile.
Buffer Nests::tile_buffer(const State &state, size_t position, const std::string &suffix) {
    const std::vector<Part> &parts = monoid_of(*state.stage).parts;
    const Part &part = parts[position];
    Buffer b{unique(state.stage->name + (parts.size() > 1 ? "." + part.name : "") + suffix), part.identity.type, register_extents(state),
             Space::registers};
    if (part.dims.empty()) {
        if (!target.is_gpu() && !fits_on_stack(b)) b.space = Space::workspace;
        return b;
    }
    b.extents.clear();
    for (const std::string &d : tile_dims(state)) b.extents.push_back(state.pieces.at(d).size);
    for (const std::string &d : part.dims) {
        auto lanes = state.knobs->vector.find(d);
        Expr unit = lanes == state.knobs->vector.end() ? Expr(1) : Expr(lanes->second);
        b.extents.push_back(simplify((extent_of(d) + unit - 1) / unit * unit, facts));
    }
    b.space = target.is_gpu() ? space_of(b) : fits_on_stack(b) ? Space::stack : Space::workspace;
    return b;
}

}  // namespace tessera

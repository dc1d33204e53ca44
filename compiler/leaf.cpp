// The innermost part of a nest: register tiles, accumulators and the expressions at one point.
#include <algorithm>

#include "algorithms/error.h"
#include "compiler/choice.h"
#include "compiler/instruction.h"
#include "compiler/nest_state.h"

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
            std::string v = unique(d + ".run");
            axes.push_back({d, v, Expr(runs->second.count), LoopKind::unrolled, true});
            guards.push_back(Expr());
            facts.set(v, Expr(0), Expr(runs->second.count - 1));
            run = variable(v) * Expr(runs->second.length);
        }
        if (count > 1) {
            std::string v = unique(d + ".u");
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
                std::string v = unique(d + ".lane");
                lane = {d, v, Expr(width / ways), LoopKind::vector};
                facts.set(v, Expr(0), Expr(width / ways - 1));
                inner = variable(v);
            }
            if (ways > 1) {
                std::string way = unique(d + ".u");
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
        std::string v = unique(d + ".e");
        Expr n = extent_of(d);
        int64_t width = has_lanes(d) && point.vector_dim.empty() ? state.knobs->vector.at(d) : 1;
        Expr count = simplify((n + Expr(width - 1)) / Expr(width), facts);
        facts.set(v, Expr(0), count - 1);
        axes.push_back({d, v, count, LoopKind::serial});
        guards.push_back(Expr());
        point.at[d] = variable(v);
        if (width == 1) continue;
        lane = {d, unique(d + ".lane"), Expr(width), LoopKind::vector};
        facts.set(lane.variable, Expr(0), Expr(width - 1));
        point.vector_dim = d;
        point.at[d] = simplify(variable(v) * Expr(width) + variable(lane.variable), facts);
        if (simplify(n % Expr(width), facts).is_constant(0)) continue;
        point.padded[d] = {Expr(0), Expr(width), Expr(width), true, n, state.depth + 1};
        if (guarded) lane_guard = point.at[d] < n;
    }
    TileBody body = {make(point, lane_guard)};
    if (!lane.variable.empty()) body = {tile_node(Loop{lane.variable, lane.count, lane.kind, 0, std::move(body)})};
    for (size_t i = axes.size() + 1; i-- > 0;) {
        if (guards[i].defined()) body = {tile_node(Guard{guards[i], std::move(body), {}})};
        if (i == 0) break;
        const Axis &axis = axes[i - 1];
        if (!axis.written_out) {
            body = {tile_node(Loop{axis.variable, axis.count, axis.kind, 0, std::move(body)})};
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
    // Extents first: that of a ragged dim is an expression of outer dims.
    auto place = [&](const Expr &n, const std::map<std::string, Expr> &values) { return simplify(substitute(resolve(n), values), facts); };
    // First the loads, inside out, while their indices still speak of dims; loop variables never have a dim's name.
    Expr located = rewrite(e, [&](const Expr &n) -> Expr {
        if (n.kind() != ExprKind::load) return {};
        auto found = realized.find(n->name);
        if (found == realized.end())
            throw UserError("schedule.place", state.stage->name + ": it loads '" + n->name + "', which is computed inside another stage's "
                                "loops and is not there any more; place the producer at root or at a loop around all its consumers.");
        const Realized &where = found->second;
        size_t rank = where.dims.size();
        std::vector<Expr> index(n->args.begin(), n->args.begin() + rank);
        Expr guard;
        std::map<std::string, Expr> safe = at;
        std::set<std::string> used;
        for (const Expr &i : index) used.merge(variables_in(i));
        std::optional<bool> roomy;
        for (const std::string &d : used) {
            auto p = point.padded.find(d);
            if (p == point.padded.end()) p = state.pieces.find(d);
            if (p == state.pieces.end() || !p->second.padded || where.depth >= p->second.since) continue;
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
            Expr inside = place(n->args[rank], safe);
            guard = guard.defined() ? guard && inside : inside;
        }
        if (state.where.defined() && !in_bounds(state, index, where)) {
            Expr inside = place(state.where, at);
            guard = guard.defined() ? guard && inside : inside;
        }
        for (Expr &i : index) i = place(i, safe);
        std::vector<Expr> axes = locate(where, index);
        if (!guard.defined()) return load(where.buffer.name, n.type(), axes);
        return load_or(where.buffer.name, n.type(), axes, guard, n->guarded ? place(n->args[rank + 1], at) : constant(n.type(), 0));
    });
    return place(located, at);
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
    std::vector<Expr> placed;
    for (const Expr &i : index) placed.push_back(simplify(substitute(resolve(i), at), facts));
    std::vector<Expr> axes = locate(where, placed);
    for (size_t i = 0; i < axes.size(); i++)
        if (!prove(axes[i] >= Expr(0), facts) || !prove(axes[i] < where.buffer.extents[i], facts)) return false;
    return true;
}

bool Nests::store_is_guarded(const Tensor &result) const {
    // A buffer of ours has room for whole tiles; an argument has not.
    return realized.at(result.name).buffer.space == Space::argument;
}

std::shared_ptr<const TileNode> Nests::store(const Tensor &result, const Point &point, const Expr &value,
                                             const Expr &guard, bool copy) {
    const Realized &where = realized.at(result.name);
    std::vector<Expr> index;
    for (const std::string &d : result.dims) index.push_back(point.at.at(d));
    index = locate(where, index);
    if (copy && value.kind() == ExprKind::load) return tile_node(Copy{where.buffer.name, index, value, guard, false, 0});
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
    Buffer b{unique(state.stage->name + (parts.size() > 1 ? "." + part.name : "") + suffix), part.identity.type, register_extents(state), Space::registers};
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

// In which order the parts of an accumulator step. A part goes in place once nobody else reads its old value; those that read
// one another's go together, by way of a second set of accumulators.
struct FoldOrder {
    std::vector<size_t> alone, together;
};

static FoldOrder fold_order(const Monoid &m) {
    std::vector<std::set<size_t>> reads(m.parts.size());
    for (size_t p = 0; p < m.parts.size(); p++)
        walk(m.step[p], [&](const Expr &n) {
            if (n.kind() == ExprKind::left) reads[p].insert(static_cast<size_t>(n->number));
        });
    FoldOrder order;
    for (size_t p = 0; p < m.parts.size(); p++) order.together.push_back(p);
    while (true) {
        auto next = std::find_if(order.together.begin(), order.together.end(), [&](size_t p) {
            return std::none_of(order.together.begin(), order.together.end(), [&](size_t q) { return q != p && reads[q].count(p); });
        });
        if (next == order.together.end()) return order;
        order.alone.push_back(*next);
        order.together.erase(next);
    }
}

TileBody Nests::fold_begin(const State &before, size_t position) {
    State state = before;
    const std::vector<Part> &parts = monoid_of(*state.stage).parts;
    bool scan = std::holds_alternative<Scan>(state.stage->body);
    Pieces scanned;
    if (scan) {  // the accumulators have no axis along the scanned dim
        const std::string &dim = std::get<Scan>(state.stage->body).dim;
        if (!state.pieces.count(dim)) state.pieces[dim] = whole_at_loop(*state.stage, dim, state.pieces);
        scanned[dim] = state.pieces.at(dim);
        state.pieces[dim] = {Expr(0), Expr(1), Expr(1), false, {}, 0};
    } else if (auto &reduce = std::get<Reduce>(state.stage->body); reduce.where.defined()) {
        state.where = resolve(reduce.where);
    }
    FoldOrder order = fold_order(monoid_of(*state.stage));
    for (size_t p = 0; p < parts.size(); p++) state.accumulators.push_back(tile_buffer(state, p, ".acc"));
    std::vector<Buffer> all = state.accumulators;
    state.accumulators.resize(2 * parts.size());
    for (size_t p : order.together) all.push_back(state.accumulators[parts.size() + p] = tile_buffer(state, p, ".next"));
    state.folding = true;
    auto initial = [&](bool from_result) {
        TileBody body;
        std::vector<Tensor> results = results_of(*state.stage);
        for (size_t p = 0; p < parts.size(); p++) {
            bool guarded = from_result && store_is_guarded(results[p]);
            TileBody one = over_tile(state, parts[p].dims, guarded, [&](const Point &point, const Expr &lane) {
                Expr value = constant(parts[p].identity);
                if (from_result) {
                    const Realized &where = realized.at(results[p].name);
                    std::vector<Expr> index;
                    for (const std::string &d : results[p].dims) index.push_back(point.at.at(d));
                    value = load_or(where.buffer.name, results[p].dtype, locate(where, index),
                                    lane.defined() ? lane : constant_int(DType::boolean, 1), value);
                }
                return tile_node(Compute{state.accumulators[p].name, tile_index(state, &parts[p], point), value, Expr()});
            });
            body.insert(body.end(), one.begin(), one.end());
        }
        return body;
    };
    TileBody body;
    if (state.earlier.empty()) {
        body = initial(false);
    } else {
        Expr first = constant_int(DType::boolean, 1);
        for (const Expr &v : state.earlier) first = first && v == Expr(0);
        body = {tile_node(Guard{first, initial(false), initial(true)})};
    }
    State inside = state;
    for (auto &[dim, piece] : scanned) inside.pieces[dim] = piece;
    TileBody loops = emit(inside, position);
    body.insert(body.end(), loops.begin(), loops.end());
    if (!scan) {
        TileBody written = write_parts(state);
        body.insert(body.end(), written.begin(), written.end());
    }
    for (auto it = all.rbegin(); it != all.rend(); ++it) body = {tile_node(Alloc{*it, std::move(body)})};
    return body;
}

TileBody Nests::write_parts(const State &state) {
    const std::vector<Part> &parts = monoid_of(*state.stage).parts;
    std::vector<Tensor> results = results_of(*state.stage);
    TileBody body;
    for (size_t p = 0; p < parts.size(); p++) {
        TileBody one = over_tile(state, parts[p].dims, store_is_guarded(results[p]), [&](const Point &point, const Expr &lane) {
            Expr value = load(state.accumulators[p].name, results[p].dtype, tile_index(state, &parts[p], point));
            return store(results[p], point, value, lane);
        });
        body.insert(body.end(), one.begin(), one.end());
    }
    return body;
}

// What a part with dims of its own computes alike for all their points is computed once for each point of the tile: the
// outermost operations of `step` that use none of those dims, each once.
std::vector<Expr> Nests::invariants_of(const Monoid &m, size_t part, const std::vector<Expr> &inputs) const {
    const std::vector<std::string> &extra = m.parts[part].dims;
    auto varies = [&](const Expr &root) {
        bool result = false;
        walk(root, [&](const Expr &n) {
            if (n.kind() == ExprKind::left) result |= !m.parts[n->number].dims.empty();
            if (n.kind() == ExprKind::input)
                for (const std::string &d : extra) result |= uses_variable(inputs[n->number], d);
        });
        return result;
    };
    std::vector<Expr> found;
    std::function<void(const Expr &)> search = [&](const Expr &e) {
        if (e.kind() == ExprKind::operation && !varies(e)) {
            bool known = std::any_of(found.begin(), found.end(), [&](const Expr &f) { return equal(e, f); });
            if (!known && !e.is_constant()) found.push_back(e);
            return;
        }
        for (const Expr &arg : e->args) search(arg);
    };
    if (!extra.empty()) search(m.step[part]);
    return found;
}

// acc = the family's meaning of acc and a group of elements.
TileBody Nests::instruction_step(const State &state, const Instruction &family) {
    auto &reduce = std::get<Reduce>(state.stage->body);
    const std::string &dim = state.loops.back().dim;
    std::vector<Expr> pair = *operands_for(family, reduce);
    const Buffer &to = state.accumulators[0];
    return over_tile(state, {}, false, [&](const Point &point, const Expr &) {
        std::vector<Expr> operands, index = tile_index(state, nullptr, point);
        for (int i = 0; i < family.group; i++) {
            Point element = point;
            Expr at = state.pieces.at(dim).lo + Expr(i);
            element.at[dim] = simplify(state.group_limit.defined() ? min(at, state.group_limit - 1) : at, facts);
            for (const Expr &operand : pair) {
                Expr value = evaluate(state, operand, element);
                if (state.group_limit.defined()) value = select(simplify(at < state.group_limit, facts), value, constant(value.type(), 0));
                operands.push_back(value);
            }
        }
        return tile_node(Compute{to.name, index, apply(family, load(to.name, to.dtype, index), operands), Expr()});
    });
}

// acc = step(acc, inputs), all parts from the old values.
TileBody Nests::fold_step(const State &state) {
    const Stage &stage = *state.stage;
    const Monoid &m = monoid_of(stage);
    if (state.group > 1) return instruction_step(state, *instruction_of(state));
    auto *reduce = std::get_if<Reduce>(&stage.body);
    const std::vector<Expr> &inputs = reduce ? reduce->inputs : std::get<Scan>(stage.body).inputs;
    FoldOrder order = fold_order(m);
    auto accumulator = [&](size_t p, const Point &point) {
        return load(state.accumulators[p].name, m.parts[p].identity.type, tile_index(state, &m.parts[p], point));
    };
    auto step_at = [&](const Expr &step, const Point &point) {
        return rewrite(step, [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::input) return evaluate(state, inputs[n->number], point);
            return n.kind() == ExprKind::left ? accumulator(n->number, point) : Expr();
        });
    };
    auto append = [](TileBody &to, const TileBody &more) { to.insert(to.end(), more.begin(), more.end()); };
    TileBody body;
    std::vector<Buffer> temporaries;
    auto step_part = [&](size_t p, const Buffer &to) {
        std::vector<std::pair<Expr, Buffer>> invariants;
        for (const Expr &e : invariants_of(m, p, inputs)) {
            Buffer b{unique(stage.name + ".weight"), e.type(), register_extents(state), Space::registers};
            append(body, over_tile(state, {}, false, [&](const Point &point, const Expr &) {
                return tile_node(Compute{b.name, tile_index(state, nullptr, point), step_at(e, point), Expr()});
            }));
            invariants.emplace_back(e, b);
            temporaries.push_back(b);
        }
        append(body, over_tile(state, m.parts[p].dims, false, [&](const Point &point, const Expr &) {
            // Invariants go in as placeholders: rewriting works from the leaves up and would not meet them whole again.
            std::function<Expr(const Expr &)> replace = [&](const Expr &e) -> Expr {
                for (auto &[invariant, b] : invariants)
                    if (equal(e, invariant)) return load(b.name, b.dtype, tile_index(state, nullptr, point));
                if (e.kind() == ExprKind::operation) {
                    std::vector<Expr> args;
                    for (const Expr &arg : e->args) args.push_back(replace(arg));
                    return operation(e->op, args);
                }
                return step_at(e, point);
            };
            Expr value = invariants.empty() ? step_at(m.step[p], point) : replace(m.step[p]);
            if (state.where.defined()) value = select(evaluate(state, state.where, point), value, accumulator(p, point));
            return tile_node(Compute{to.name, tile_index(state, &m.parts[p], point), value, Expr()});
        }));
    };
    for (size_t p : order.alone) step_part(p, state.accumulators[p]);
    for (size_t p : order.together) step_part(p, state.accumulators[m.parts.size() + p]);
    for (size_t p : order.together)
        append(body, over_tile(state, m.parts[p].dims, false, [&](const Point &point, const Expr &) {
            std::vector<Expr> index = tile_index(state, &m.parts[p], point);
            Expr value = load(state.accumulators[m.parts.size() + p].name, m.parts[p].identity.type, index);
            return tile_node(Compute{state.accumulators[p].name, index, value, Expr()});
        }));
    for (auto it = temporaries.rbegin(); it != temporaries.rend(); ++it) body = {tile_node(Alloc{*it, std::move(body)})};
    return body;
}

// The identity in the place of what a scan has folded, where an element begins a segment.
TileBody Nests::begin_segment(const State &state, const Expr &begins) {
    const std::vector<Part> &parts = monoid_of(*state.stage).parts;
    TileBody body;
    for (size_t p = 0; p < parts.size(); p++) {
        TileBody one = over_tile(state, parts[p].dims, false, [&](const Point &point, const Expr &) {
            const std::string &name = state.accumulators[p].name;
            std::vector<Expr> index = tile_index(state, &parts[p], point);
            Expr folded = load(name, parts[p].identity.type, index);
            return tile_node(Compute{name, index, select(evaluate(state, begins, point), constant(parts[p].identity), folded), Expr()});
        });
        body.insert(body.end(), one.begin(), one.end());
    }
    return body;
}

TileBody Nests::leaf(const State &state) {
    TileBody body = prefetches(state), rest = compute(state);
    body.insert(body.end(), rest.begin(), rest.end());
    return body;
}

TileBody Nests::compute(const State &state) {
    const Stage &stage = *state.stage;
    if (std::holds_alternative<Reduce>(stage.body)) return fold_step(state);
    if (auto *scan = std::get_if<Scan>(&stage.body)) {
        TileBody body = scan->segments.defined() ? begin_segment(state, scan->segments) : TileBody();
        TileBody step = fold_step(state), write = write_parts(state);
        for (const TileBody &part : {scan->inclusive ? step : write, scan->inclusive ? write : step})
            body.insert(body.end(), part.begin(), part.end());
        return body;
    }
    if (auto *update = std::get_if<Update>(&stage.body)) {
        bool padded = std::any_of(state.pieces.begin(), state.pieces.end(), [](auto &p) { return p.second.padded; });
        return over_tile(state, {}, padded, [&](const Point &point, const Expr &lane) {
            const Realized &where = realized.at(update->state);
            std::vector<Expr> index;
            for (const Expr &e : update->index) index.push_back(evaluate(state, e, point));
            return tile_node(Compute{where.buffer.name, locate(where, index), evaluate(state, update->value, point), lane});
        });
    }
    Tensor result = results_of(stage)[0];
    return over_tile(state, {}, store_is_guarded(result), [&](const Point &point, const Expr &lane) {
        return store(result, point, evaluate(state, std::get<Map>(stage.body).value, point), lane, true);
    });
}

// A fold with a computed destination: identity everywhere, then one element after the other.
TileBody Nests::scatter(const Stage &stage, const Reduce &reduce) {
    State state;
    state.stage = &stage;
    state.knobs = &knobs_of(stage.name);
    const Monoid &m = reduce.monoid;
    if (m.parts.size() != 1 || !m.parts[0].dims.empty())
        throw UserError("schedule.scatter", stage.name + ": a fold with a computed destination has one part; '" + m.name + "' has " +
                            std::to_string(m.parts.size()) + ".");
    Tensor result = results_of(stage)[0];
    auto loops_over = [&](const std::vector<std::string> &dims, Point &point, const std::function<TileBody()> &inside) {
        std::vector<std::pair<std::string, Expr>> loops;
        for (const std::string &d : dims) {
            Piece p = whole(d, state.pieces);
            if (!p.size.defined()) throw UserError("schedule.ragged", stage.name + ": dim '" + d + "' is ragged in a dim that comes later.");
            std::string v = loop_variable({"", d});
            facts.set(v, Expr(0), p.size - 1);
            loops.emplace_back(v, p.size);
            state.pieces[d] = {variable(v), Expr(1), Expr(1), false, {}, 0};
            point.at[d] = variable(v);
        }
        TileBody body = inside();
        for (auto it = loops.rbegin(); it != loops.rend(); ++it)
            body = {tile_node(Loop{it->first, it->second, LoopKind::serial, 0, std::move(body)})};
        return body;
    };
    Point everywhere, element;
    TileBody body = loops_over(stage.dims, everywhere, [&]() -> TileBody {
        return {store(result, everywhere, constant(m.parts[0].identity), Expr())};
    });
    state.pieces.clear();
    TileBody fold = loops_over(reduce.dims, element, [&]() -> TileBody {
        Expr inside = reduce.where.defined() ? evaluate(state, reduce.where, element) : constant_int(DType::boolean, 1);
        std::vector<Expr> position;
        for (size_t i = 0; i < stage.dims.size(); i++) {
            position.push_back(evaluate(state, reduce.at[i], element));
            inside = inside && Expr(0) <= position.back() && position.back() < extent_of(stage.dims[i]);
        }
        const Realized &where = realized.at(result.name);
        std::vector<Expr> index = locate(where, position);
        Expr value = rewrite(m.step[0], [&](const Expr &n) -> Expr {
            if (n.kind() == ExprKind::input) return evaluate(state, reduce.inputs[n->number], element);
            return n.kind() == ExprKind::left ? load(where.buffer.name, result.dtype, index) : Expr();
        });
        return {tile_node(Guard{simplify(inside, facts), {tile_node(Compute{where.buffer.name, index, value, Expr()})}, {}})};
    });
    body.insert(body.end(), fold.begin(), fold.end());
    if (target.is_gpu()) body = {tile_node(Loop{unique("thread"), Expr(1), LoopKind::thread, 0, std::move(body)})};
    return body;
}

}  // namespace tessera

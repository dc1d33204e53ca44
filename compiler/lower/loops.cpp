// The loops of one stage's nest: over tiles, over vectors, point by point, in groups of an instruction family.
#include <algorithm>
#include <cctype>
#include <numeric>

#include "compiler/lower/nest_state.h"
#include "compiler/rewrite/choice.h"
#include "compiler/tile/instruction.h"
#include "compiler/tile/tile_identity.h"
#include "support/text/error.h"

namespace tessera {

// The size of a piece, seen from inside a loop over it: it is not empty there, so max(0, n) is n.
static Expr inhabited(const Expr &size) {
    if (size.is_operation(Op::max))
        for (int i = 0; i < 2; i++)
            if (size->args[i].is_constant(0)) return size->args[1 - i];
    return size;
}

// Where a tile that is cut from a piece and may run past it has to stop. A tile may be larger than what is needed of a placed
// stage, and than what is placed inside that one.
static Expr limit_in(const Piece &piece, const Bounds &facts) {
    Expr end = simplify(piece.lo + inhabited(piece.size), facts);
    return piece.padded ? simplify(min(piece.limit, end), facts) : end;
}

static bool divides(int64_t tile, const Expr &size, const Bounds &facts) { return simplify(size % Expr(tile), facts).is_constant(0); }

std::string Nests::loop_variable(const LoopName &loop) {
    std::string name = plain(loop.dim);
    for (char &c : name) c = static_cast<char>(std::tolower(c));
    return unique(loop.level.empty() ? name : name + "." + loop.level);
}

std::string Nests::open_loop(const State &state, const LoopName &loop) {
    around.emplace_back(state.stage->name + "." + loop.text(), loop_variable(loop));
    return around.back().second;
}

// A loop of `count` iterations around `body`; of one iteration the body alone, which does without the variable.
static TileBody loop_of(const std::string &variable, const Expr &count, LoopKind kind, TileBody body) {
    if (count.is_constant(1)) return body;
    return {tile_node(Loop{variable, count, kind, std::move(body)})};
}

LoopKind Nests::kind_at(const State &state, size_t position) const {
    if (position >= state.parallel) return LoopKind::serial;
    return target.is_gpu() ? LoopKind::block : LoopKind::parallel;
}

TileBody Nests::emit_tiles(State state, size_t position, int64_t tile) {
    const LoopName loop = state.loops[position];
    const Piece p = state.pieces.at(loop.dim);
    bool last = std::none_of(state.loops.begin() + position + 1, state.loops.end(), [&](const LoopName &l) { return l.dim == loop.dim; });
    auto lanes = state.knobs->vector.find(loop.dim);
    int64_t unit = last && lanes != state.knobs->vector.end() ? lanes->second : 1;
    if (auto micro = state.knobs->micro.find(loop.dim); target.is_gpu() && last && micro != state.knobs->micro.end()) unit = micro->second;
    if (p.size.is_constant() && p.size->value.integer < tile)
        tile = std::max<int64_t>(unit, (p.size->value.integer + unit - 1) / unit * unit);
    bool whole_tiles = divides(tile, p.size, facts);
    auto tail = state.knobs->tail.find(loop.dim);
    if (last && !whole_tiles && tail != state.knobs->tail.end() && tail->second == Tail::loop)
        return emit_full_tiles(state, position, tile);
    bool outer_slice = is_fold(*state.stage) && position < state.fold_at && !is_spatial(*state.stage, loop.dim);
    Expr count = simplify((p.size + Expr(tile - 1)) / Expr(tile), facts);
    if (outer_slice) count = simplify(max(count, Expr(1)), facts);
    if (count.is_constant(0)) return {};
    // What a placed stage computes is mostly one tile, of which not all may be needed.
    if (target.is_gpu() && last && p.most.is_constant() && p.most->value.integer <= tile && prove(Expr(1) <= p.size, facts))
        count = Expr(1);
    std::string v = open_loop(state, loop);
    if (count.is_constant(1)) facts.set(v, Expr(0), Expr(0));
    else facts.set(v, Expr(0), count - 1);
    Expr start = count.is_constant(1) ? Expr(0) : variable(v) * Expr(tile);
    state.depth++;
    if (outer_slice && !count.is_constant(1)) state.earlier.push_back(variable(v));
    LoopKind kind = kind_at(state, position);
    Piece &inner = state.pieces[loop.dim];
    inner.lo = simplify(p.lo + start, facts);
    // A slice of a fold runs even when there is nothing to fold: its one tile may then be empty.
    bool may_be_empty = outer_slice && !prove(p.size >= Expr(1), facts);
    if (last || (whole_tiles && !may_be_empty)) {
        inner.size = inner.most = Expr(tile);
        if (!whole_tiles) {
            inner.padded = true, inner.since = state.depth;
            inner.limit = limit_in(p, facts);
            state.partial.insert(loop.dim);
        }
        return loop_of(v, count, kind, after_loop(state, position));
    }
    Expr left_over = simplify(min(Expr(tile), (outer_slice ? p.size : inhabited(p.size)) - start), facts);
    if (outer_slice) left_over = simplify(max(left_over, Expr(0)), facts);
    inner.most = p.most.is_constant() && p.most->value.integer < tile ? p.most : Expr(tile);
    if (left_over.is_constant()) {
        inner.size = left_over;
        return loop_of(v, count, kind, after_loop(state, position));
    }
    std::string name = unique(v + ".size");
    // That the loop runs is known inside it only.
    Bounds outside = facts;
    facts.set(name, Expr(outer_slice ? 0 : 1), Expr(tile));
    if (!outer_slice) facts.assume(variable(name) <= simplify(inhabited(p.size) - start, facts));
    inner.size = variable(name);
    TileBody body = after_loop(state, position);
    facts = outside;
    return loop_of(v, count, kind, {tile_node(Let{name, left_over, std::move(body)})});
}

// Tiles as far as they are full, then point by point.
TileBody Nests::emit_full_tiles(const State &before, size_t position, int64_t tile) {
    const LoopName loop = before.loops[position];
    const Piece p = before.pieces.at(loop.dim);
    Expr full = simplify(p.size / Expr(tile), facts);
    TileBody body;
    if (!full.is_constant(0)) {
        State state = before;
        state.depth++;
        std::string v = open_loop(state, loop);
        facts.set(v, Expr(0), full - 1);
        Piece &inner = state.pieces[loop.dim];
        inner.lo = simplify(p.lo + (full.is_constant(1) ? Expr(0) : variable(v)) * Expr(tile), facts);
        inner.size = inner.most = Expr(tile);
        body = loop_of(v, full, kind_at(before, position), after_loop(state, position));
    }
    TileBody rest = points_from(before, position, simplify(full * Expr(tile), facts), tile - 1);
    body.insert(body.end(), rest.begin(), rest.end());
    return body;
}

// What is left of a loop's piece after its first `done` points, at most `most`, point by point.
TileBody Nests::points_from(const State &before, size_t position, const Expr &done, int64_t most) {
    State state = before;
    state.loops[position].level.clear();
    Piece &left = state.pieces[state.loops[position].dim];
    left.lo = simplify(left.lo + done, facts), left.size = simplify(left.size - done, facts), left.most = Expr(most);
    return emit_points(state, position);
}

// The innermost reduced dim, in the groups of an instruction family: whole groups first, then one of what is left over
// and zeros.
TileBody Nests::emit_groups(const State &before, size_t position, int group) {
    const LoopName &loop = before.loops[position];
    const Piece p = before.pieces.at(loop.dim);
    auto body_at = [&](const Expr &lo, const Expr &limit) {
        State state = before;
        state.depth++;
        state.group = group, state.group_limit = limit;
        Piece &inner = state.pieces[loop.dim];
        inner.lo = simplify(lo, facts);
        inner.size = limit.defined() ? simplify(limit - lo, facts) : Expr(group);
        inner.most = Expr(limit.defined() ? group - 1 : group);
        return after_loop(state, position);
    };
    Expr count = simplify(p.size / Expr(group), facts);
    TileBody body =
        repeat(before, loop, Expr(0), count, LoopKind::serial, [&](const Expr &i) { return body_at(p.lo + i * Expr(group), {}); });
    if (divides(group, p.size, facts)) return body;
    Expr done = simplify(count * Expr(group), facts);
    Expr some = simplify(done < p.size, facts);
    Bounds outside = facts;
    facts.assume(some);
    TileBody rest = body_at(p.lo + done, simplify(p.lo + p.size, facts));
    facts = outside;
    body.push_back(tile_node(Guard{some, std::move(rest), {}}));
    return body;
}

static bool runs_backward(const Stage &stage, const std::string &dim) {
    auto *scan = std::get_if<Scan>(&stage.body);
    return scan && scan->dim == dim && scan->direction == ScanDirection::backward;
}

// Slices of a reduction continue what earlier ones accumulated; single points of it outside the accumulators do not.
void Nests::check_accumulates(const State &state, size_t position) const {
    const Stage &stage = *state.stage;
    const LoopName &loop = state.loops[position];
    auto *scan = std::get_if<Scan>(&stage.body);
    const bool scanned = scan && loop.dim == scan->dim;
    if (position >= state.fold_at || !is_fold(stage) || (is_spatial(stage, loop.dim) && !scanned)) return;
    std::vector<std::string> order;
    for (const LoopName &l : state.loops) order.push_back(l.text());
    throw UserError("schedule.loops", stage.name + ": the loop '" + loop.text() + "' " +
                                          (scanned ? "runs along the scan" : "is a single point of the fold") +
                                          " and stands outside the loop '" + state.loops[state.fold_at - (scanned ? 0 : 1)].text() +
                                          "'; the order is " + join(order) + ". " +
                                          (scanned ? "Leave the scanned dim out of 'loops': it is innermost by itself."
                                                   : "Put it after the stage's own dims, or cut the dim into slices ('k')."));
}

TileBody Nests::repeat(const State &state, const LoopName &loop, const Expr &first, const Expr &count, LoopKind kind,
                       const std::function<TileBody(const Expr &)> &at) {
    auto run = [&](const Expr &from, const Expr &n, int64_t unrolled) -> TileBody {
        if (n.is_constant() && n->value.integer <= 0) return {};
        std::string v = open_loop(state, loop);
        bool once = n.is_constant(1);
        facts.set(v, Expr(0), once ? Expr(0) : n - 1);
        Expr index = once ? Expr(0) : variable(v);
        if (unrolled == 1) return loop_of(v, n, kind, at(from + index));
        std::string u = unique(v + ".u");
        facts.set(u, Expr(0), Expr(unrolled - 1));
        TileBody body = at(from + index * Expr(unrolled) + variable(u));
        return loop_of(v, n, kind, {tile_node(Loop{u, Expr(unrolled), LoopKind::unrolled, std::move(body)})});
    };
    auto stated = state.knobs->unroll.find(loop.dim);
    // With every point's guards and addresses side by side, registers would not do.
    const bool written_out = stated != state.knobs->unroll.end() && !(state.at_border && !is_spatial(*state.stage, loop.dim));
    int64_t unrolled = written_out ? stated->second : 1;
    if (unrolled == 1) return run(first, count, 1);
    Expr groups = simplify(count / Expr(unrolled), facts);
    TileBody body = run(first, groups, unrolled);
    TileBody rest = run(simplify(first + groups * Expr(unrolled), facts), simplify(count % Expr(unrolled), facts), 1);
    body.insert(body.end(), rest.begin(), rest.end());
    return body;
}

TileBody Nests::emit_points(const State &before, size_t position) {
    const LoopName &loop = before.loops[position];
    const Piece p = before.pieces.at(loop.dim);
    LoopKind kind = kind_at(before, position);
    check_accumulates(before, position);
    if (position + 1 == before.loops.size() && instruction_of(before)) return emit_groups(before, position, instruction_of(before)->group);
    auto points = [&](const Expr &first, const Expr &count, bool where_holds) {
        State state = before;
        state.depth++;
        if (where_holds) state.where = Expr();
        return repeat(before, loop, first, count, kind, [&](const Expr &at) {
            Piece &inner = state.pieces[loop.dim];
            inner.lo = simplify(runs_backward(*before.stage, loop.dim) ? p.lo + p.size - 1 - (at - p.lo) : at, facts);
            inner.size = inner.most = Expr(1);
            return after_loop(state, position);
        });
    };
    // Where the condition holds for a first part of the range at every point of the tile, that part needs no test.
    Expr safe;
    if (before.where.defined() && !is_spatial(*before.stage, loop.dim) && !has_producers(before, position))
        safe = where_limit(before.where, loop.dim, before.pieces, facts, false);
    if (!safe.defined()) return points(p.lo, p.size, false);
    // A loop of a negative count does not run, so what is left over needs no floor at 0.
    Expr size = inhabited(p.size);
    auto points_below = [&](const Expr &limit) { return simplify(max(min(limit - p.lo, size), Expr(0)), facts); };
    Expr split = points_below(safe);
    // Where it holds nowhere beyond, nothing is left over.
    if (equal(split, points_below(where_limit(before.where, loop.dim, before.pieces, facts, true)))) return points(p.lo, split, true);
    std::string name = unique(loop_variable(loop) + ".safe");
    facts.set(name, Expr(0), p.most.defined() ? p.most : Expr());
    TileBody body = points(p.lo, variable(name), true);
    TileBody rest = points(simplify(p.lo + variable(name), facts), simplify(size - variable(name), facts), false);
    body.insert(body.end(), rest.begin(), rest.end());
    return {tile_node(Let{name, split, std::move(body)})};
}

// Where a value chooses by run which of several things it computes, what it computes at like points of all runs is computed
// together: the loop goes over one of them, in vectors that divide it.
void Nests::take_runs(State &state, const std::string &dim, int64_t &lanes) const {
    Piece &p = state.pieces[dim];
    if (target.is_gpu() || !p.lo.is_constant(0) || !p.size.is_constant() || p.padded) return;
    const int64_t length = choice_of(*state.stage, dim).run;
    if (length == 0 || p.size->value.integer <= length || p.size->value.integer % length) return;
    state.runs[dim] = {p.size->value.integer / length, length};
    p.size = p.most = Expr(length);
    lanes = std::gcd(lanes, length);
}

TileBody Nests::emit_vectors(State before, size_t position, int64_t lanes) {
    const LoopName &loop = before.loops[position];
    take_runs(before, loop.dim, lanes);
    const Piece p = before.pieces.at(loop.dim);
    LoopKind kind = kind_at(before, position);
    bool whole_vectors = divides(lanes, p.size, facts);
    auto body_at = [&](const Expr &start, bool padded) {
        State state = before;
        state.depth++;
        Piece &inner = state.pieces[loop.dim];
        inner.lo = simplify(p.lo + start, facts);
        inner.size = inner.most = Expr(lanes);
        if (padded) {
            inner.padded = true, inner.since = state.depth;
            inner.limit = limit_in(p, facts);
        }
        return after_loop(state, position);
    };
    Expr full = simplify(p.size / Expr(lanes), facts);
    TileBody body;
    if (!full.is_constant(0)) {
        std::string v = open_loop(before, loop);
        facts.set(v, Expr(0), full.is_constant(1) ? Expr(0) : full - 1);
        body = loop_of(v, full, kind, body_at(full.is_constant(1) ? Expr(0) : variable(v) * Expr(lanes), false));
    }
    if (whole_vectors) return body;
    Expr done = simplify(full * Expr(lanes), facts);
    auto policy = before.knobs->tail.find(loop.dim);
    TileBody rest;
    if (policy != before.knobs->tail.end() && policy->second == Tail::loop) {
        rest = points_from(before, position, done, lanes - 1);
    } else {
        rest = {tile_node(Guard{simplify(done < p.size, facts), body_at(done, true), {}})};
    }
    body.insert(body.end(), rest.begin(), rest.end());
    return body;
}

// The family of more than one element that the stage's fold uses.
const Instruction *Nests::instruction_of(const State &state) const {
    if (!state.knobs->instruction) return nullptr;
    const Instruction *family = find_instruction(*state.knobs->instruction);
    require(family, "a schedule's instruction was checked");
    return family->group > 1 ? family : nullptr;
}

// What has to hold for no load of the fold to need its guard anywhere in the pieces; true where there is nothing to tell apart.
Expr Nests::needs_no_guards(const State &state) const {
    Expr all = constant_int(DType::boolean, 1);
    if (!borders || !is_fold(*state.stage)) return all;
    Pieces pieces = state.pieces;
    for (const LoopName &loop : state.loops)
        if (!pieces.count(loop.dim)) pieces[loop.dim] = whole_under_where(*state.stage, loop.dim, pieces);
    for (const Expr &e : seen.at(state.stage).loads) {
        if (!e->guarded) continue;
        const Expr holds = holds_throughout(resolve(e->args[e->args.size() - 2]), pieces);
        if (holds.defined() && !holds->loads) all = all && simplify(holds, facts);
    }
    return simplify(all, facts);
}

// One version where `condition` holds, and one otherwise; the second alone where both do the same. What they contain is never in scope
// together, so both have the same names, which also shows whether they do the same.
TileBody Nests::versions(const Expr &condition, const std::function<TileBody()> &first, const std::function<TileBody()> &second) {
    const Bounds outside = facts;
    const size_t known = made.size();
    facts.assume(condition);
    TileBody where_it_holds = first();
    facts = outside;
    const std::vector<std::string> of_first = forget_names(known);
    TileBody otherwise = second();
    for (const std::string &name : of_first)
        if (names.insert(name).second) made.push_back(name);
    if (equal(where_it_holds, otherwise)) return otherwise;
    return {tile_node(Guard{condition, std::move(where_it_holds), std::move(otherwise)})};
}

// Most of an image is not at its border: there no load needs its guard.
TileBody Nests::inside_or_at_border(const State &state, size_t position) {
    const Expr inside = needs_no_guards(state);
    if (inside.is_constant()) return place_producers(state, position);
    told_apart = true;
    State border = state;
    border.at_border = true;
    return versions(
        inside, [&] { return place_producers(state, position); }, [&] { return place_producers(border, position); });
}

// Inside the last loop that cuts register tiles, a full version is told from one with points to spare. A GPU has one for
// both: its threads test their points while they wait for memory, and shared memory need be set aside once only.
TileBody Nests::after_loop(const State &state, size_t position) {
    bool more = false;
    for (size_t i = position + 1; i < state.loops.size(); i++) more |= state.loops[i].level == "micro";
    if (more || target.is_gpu()) return place_producers(state, position);
    if (state.partial.empty())
        return state.loops[position].level == "micro" ? inside_or_at_border(state, position) : place_producers(state, position);
    State full = state, tail = state;
    full.partial.clear(), tail.partial.clear();
    Expr all = constant_int(DType::boolean, 1);
    for (const std::string &d : state.partial) {
        Piece &p = full.pieces[d];
        all = all && simplify(p.lo + p.size <= p.limit, facts);
        p.padded = false;
    }
    if (all.is_constant(0)) return place_producers(tail, position);
    if (all.is_constant(1)) return inside_or_at_border(full, position);
    tail.at_border = !needs_no_guards(full).is_constant();
    return versions(
        all, [&] { return inside_or_at_border(full, position); }, [&] { return place_producers(tail, position); });
}

}  // namespace tessera

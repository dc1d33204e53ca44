// Stages placed inside another stage's loops: the regions they must fill, their storage and where their values are.
#include <algorithm>

#include "compiler/lower/nest_state.h"
#include "support/text/error.h"

namespace tessera {

// A dim of at most so many points is not worth limiting by a fold's condition.
static constexpr int64_t short_piece = 256;

Piece Nests::whole_under_where(const Stage &stage, const std::string &dim, const Pieces &outer) const {
    Piece p = whole(dim, outer);
    auto *reduce = std::get_if<Reduce>(&stage.body);
    if (!reduce || !reduce->where.defined() || !p.size.defined() || is_spatial(stage, dim)) return p;
    // A loop over pieces is limited, however few they are; inside a short piece a limit would cost more in index arithmetic than it saves.
    const Expr where = resolve(reduce->where);
    if (p.most.is_constant() && p.most->value.integer <= short_piece && step_in(where, dim) <= 1) return p;
    Expr limit = where_limit(where, dim, outer, facts, true);
    if (limit.defined()) p.size = simplify(max(min(p.size, limit), Expr(0)), facts);
    return p;
}

static bool names_loop(const Place &place, const std::string &stage, const std::vector<LoopName> &loops, size_t position) {
    if (place.kind != Place::Kind::at || place.stage != stage) return false;
    if (place.loop == loops[position].text()) return true;
    if (place.loop != loops[position].level) return false;
    for (size_t i = position + 1; i < loops.size(); i++)
        if (loops[i].level == place.loop) return false;
    return true;
}

bool Nests::has_producers(const State &state, size_t position) const {
    for (const Stage &stage : algorithm.stages) {
        const Knobs &k = knobs_of(stage.name);
        for (size_t i = position; k.place && i < state.loops.size(); i++)
            if (names_loop(*k.place, state.stage->name, state.loops, i)) return true;
    }
    return false;
}

void Nests::touch(const Stage &stage, const Pieces &known, std::map<std::string, std::vector<Piece>> &regions) const {
    Pieces pieces = known;
    for (const std::string &d : reduced_dims(stage))
        if (!pieces.count(d)) {
            Piece p = whole_under_where(stage, d, pieces);
            if (!p.size.defined()) p.size = p.most;
            pieces[d] = p;
        }
    for (const Part &part : is_fold(stage) ? monoid_of(stage).parts : std::vector<Part>{})
        for (const std::string &d : part.dims) pieces[d] = whole(d, {});
    for (const Expr &n : seen.at(&stage).loads) {
        auto made_by = producers.find(n->name);
        if (made_by == producers.end()) continue;
        const Stage *producer = made_by->second;
        std::vector<std::string> dims;
        for (const Tensor &t : results_by(*producer))
            if (t.name == n->name) dims = t.dims;
        std::vector<Piece> box;
        Pieces needed;
        for (size_t i = 0; i < dims.size(); i++) {
            Piece p = span(resolve(n->args[i]), pieces, facts);
            if (!p.size.defined() || variables_in(p.lo).count(dims[i])) p = whole(dims[i], pieces), p.whole = true;
            // A scan starts at its start.
            if (auto *scan = std::get_if<Scan>(&producer->body); scan && scan->dim == dims[i]) p = whole(dims[i], needed), p.whole = true;
            // What lies outside of the tensor is never needed, even where the load says so only by its fold's condition.
            Expr all = whole(dims[i], needed).size;
            if (p.padded) p.limit = p.limit.defined() ? simplify(min(p.limit, extent_of(dims[i])), facts) : extent_of(dims[i]);
            if (all.defined() && (n->guarded || (!p.padded && !prove(p.lo + p.size <= all, facts)))) {
                Expr end = simplify(min(p.lo + p.size, all), facts);
                p.lo = simplify(max(p.lo, Expr(0)), facts);
                p.size = simplify(max(end - p.lo, Expr(0)), facts);
                // Where nothing is needed although the padded tile reaches into the tensor, its first point is there to be read.
                if (p.padded) p.limit = simplify(max(p.limit, p.lo + 1), facts);
            }
            box.push_back(p);
            needed[dims[i]] = p;
        }
        auto [it, fresh] = regions.emplace(n->name, box);
        for (size_t i = 0; !fresh && i < box.size(); i++) {
            auto end = [](const Piece &p) { return p.padded ? p.limit : p.lo + p.size; };
            Expr limit = simplify(max(end(it->second[i]), end(box[i])), facts);
            it->second[i] = unite(it->second[i], box[i], facts);
            if (it->second[i].padded) it->second[i].limit = limit;
        }
    }
}

// What every producer that is placed somewhere inside this nest must have filled at this point.
std::map<std::string, std::vector<Piece>> Nests::regions(const State &state) const {
    std::map<std::string, std::vector<Piece>> needed;
    Pieces pieces = state.pieces;
    for (const auto &[dim, runs] : state.runs) pieces[dim] = whole(dim, pieces);
    touch(*state.stage, pieces, needed);
    auto self = std::find_if(algorithm.stages.begin(), algorithm.stages.end(), [&](const Stage &s) { return s.name == state.stage->name; });
    for (auto it = std::make_reverse_iterator(self); it != algorithm.stages.rend(); ++it) {
        const Knobs &k = knobs_of(it->name);
        if (!k.place || k.place->kind != Place::Kind::at) continue;
        for (const Tensor &t : results_by(*it)) {
            auto found = needed.find(t.name);
            if (found == needed.end() || realized.count(t.name)) continue;
            Pieces pieces;
            for (size_t i = 0; i < it->dims.size(); i++) pieces[it->dims[i]] = found->second[i];
            touch(*it, pieces, needed);
        }
    }
    return needed;
}

void Nests::check_reads_of_update(const State &state, size_t position, const Stage &placed, const Pieces &pieces) const {
    auto *update = std::get_if<Update>(&at_root->body);
    if (!update) return;
    for (const Expr &read : seen.at(&placed).loads) {
        if (read->name != update->state) continue;
        auto refuse = [&] {
            throw UserError("schedule.order", placed.name + ": it reads the state '" + update->state + "' as it is before the update '" +
                                                  at_root->name + "', and at " + state.stage->name + "." + state.loops[position].text() +
                                                  " what it reads (" + brief(read) +
                                                  ") may have been written by earlier iterations. Place it further out, or at root.");
        };
        if (state.stage != at_root) refuse();
        for (size_t i = 0; i <= position; i++) {
            const std::string &dim = state.loops[i].dim;
            auto axis = std::find_if(update->index.begin(), update->index.end(),
                                     [&](const Expr &e) { return e.kind() == ExprKind::variable && e->name == dim; });
            if (axis == update->index.end() || !is_spatial(placed, dim)) refuse();
            const Expr &at = read->args[static_cast<size_t>(axis - update->index.begin())];
            const Piece &own = state.pieces.at(dim), &needed = pieces.at(dim);
            if (at.kind() != ExprKind::variable || at->name != dim || !equal(needed.lo, own.lo) || !needed.size.defined() ||
                !equal(needed.size, own.size))
                refuse();
        }
    }
}

bool Nests::have_sizes(const std::map<std::string, std::vector<Piece>> &regions) const {
    return std::all_of(regions.begin(), regions.end(), [&](const auto &r) {
        return std::all_of(r.second.begin(), r.second.end(),
                           [&](const Piece &p) { return !p.size.defined() || prove(p.size >= Expr(0), facts); });
    });
}

// Whether the stage's piece is not empty.
Expr Nests::has_points(const State &state) const {
    Expr all = constant_int(DType::boolean, 1);
    for (const auto &[dim, piece] : state.pieces)
        if (piece.size.defined()) all = all && simplify(piece.size >= Expr(1), facts);
    return simplify(all, facts);
}

TileBody Nests::place_producers(const State &state, size_t position) {
    std::vector<const Stage *> here;
    for (const Stage &stage : algorithm.stages) {
        const Knobs &k = knobs_of(stage.name);
        if (k.place && names_loop(*k.place, state.stage->name, state.loops, position)) here.push_back(&stage);
    }
    if (here.empty()) return emit(state, position + 1);
    auto needed = regions(state);
    auto outside = realized;
    const Bounds facts_outside = facts;
    // Of a piece of no points a window spans less than nothing, so nothing is computed for it.
    const Expr some = have_sizes(needed) ? constant_int(DType::boolean, 1) : has_points(state);
    if (!some.is_constant()) facts.assume(some), needed = regions(state);
    TileBody body;
    std::vector<Buffer> buffers;
    for (const Stage *stage : here) {
        Pieces pieces;
        for (const Tensor &result : results_by(*stage)) {
            auto found = needed.find(result.name);
            if (found == needed.end()) continue;
            for (size_t i = 0; i < stage->dims.size(); i++) {
                auto [it, fresh] = pieces.emplace(stage->dims[i], found->second[i]);
                if (!fresh) it->second = unite(it->second, found->second[i], facts);
            }
        }
        if (pieces.empty())
            throw UserError("schedule.place", stage->name + ": it is placed at " + state.stage->name + "." + state.loops[position].text() +
                                                  ", and nothing there loads it; place it where its consumer is.");
        check_reads_of_update(state, position, *stage, pieces);
        if (target.is_gpu()) share_out(*stage, pieces, false);
        for (const Tensor &result : results_by(*stage)) buffers.push_back(allocate(*stage, result, pieces, state.depth));
        // The size of a ragged dim is known where its loop begins.
        std::erase_if(pieces, [](const auto &p) { return !p.second.size.defined(); });
        TileBody nest = realize(*stage, pieces, state.depth);
        body.insert(body.end(), nest.begin(), nest.end());
    }
    facts = facts_outside;
    if (!some.is_constant()) body = {tile_node(Guard{some, std::move(body), {}})};
    TileBody rest = emit(state, position + 1);
    body.insert(body.end(), rest.begin(), rest.end());
    for (auto it = buffers.rbegin(); it != buffers.rend(); ++it) body = {tile_node(Alloc{*it, std::move(body)})};
    realized = outside;
    return body;
}

// The extent of a stage's register tile along a dim: storage is rounded up to it, so that a tile that runs past the
// region stays inside the buffer.
static int64_t slack_of(const Knobs &k, const std::string &dim, bool gpu) {
    if (auto it = k.block.find(dim); gpu && it != k.block.end()) return it->second;
    if (auto it = k.micro.find(dim); it != k.micro.end()) return it->second;
    if (auto it = k.vector.find(dim); it != k.vector.end()) return it->second;
    return 1;
}

// Whether every outer tile of the dim is whole register tiles, so that all of them start at multiples of theirs.
static bool starts_aligned(const Knobs &k, const std::string &dim, int64_t unit) {
    auto divides = [&](const Extents &tiles) {
        auto it = tiles.find(dim);
        return it == tiles.end() || it->second % unit == 0;
    };
    return divides(k.block) && std::all_of(k.levels.begin(), k.levels.end(), [&](auto &level) { return divides(level.second); });
}

static Expr round_up(const Expr &e, int64_t unit) { return unit == 1 ? e : (e + Expr(unit - 1)) / Expr(unit) * Expr(unit); }

Buffer Nests::allocate(const Stage &stage, const Tensor &result, const Pieces &pieces, int depth) {
    const Knobs &k = knobs_of(stage.name);
    Realized r;
    r.dims = result.dims;
    r.depth = depth;
    r.layout = k.layout;
    std::map<std::string, Expr> sizes;
    for (const std::string &d : result.dims) {
        Piece p = pieces.count(d) ? pieces.at(d) : whole(d, {});
        if (!p.most.defined() || !variables_in(p.most).empty())
            throw UserError("schedule.place",
                            stage.name + ": how much of dim '" + d +
                                "' is needed at its place has no bound that "
                                "is free of loop variables, so no storage can be set aside; place it at root or further in.");
        r.origin.push_back(depth == 0 ? Expr(0) : p.lo);
        if (p.whole) r.whole.insert(d);
        int64_t unit = slack_of(k, d, target.is_gpu());
        // A tile that is larger than the region is cut to it, up to whole vectors.
        if (auto lanes = k.vector.find(d); !target.is_gpu() && p.size.defined() && p.size.is_constant() && p.size->value.integer < unit)
            unit = lanes == k.vector.end() ? 1 : lanes->second;
        sizes[d] = simplify(starts_aligned(k, d, unit) ? round_up(p.most, unit) : p.most + Expr(unit - 1), facts);
    }
    r.buffer = {depth == 0 ? result.name : unique(result.name + ".tile"), result.dtype, {}, Space::workspace};
    if (r.layout.empty())
        for (const std::string &d : result.dims) r.buffer.extents.push_back(sizes.at(d));
    for (const LayoutAxis &axis : r.layout) {
        if (!sizes.count(axis.dim))
            throw UserError("schedule.layout", stage.name + ": the layout names dim '" + axis.dim + "', and '" + result.name +
                                                   "' has dims " + join(result.dims) + ".");
        Expr size = sizes.at(axis.dim);
        if (axis.factor == 0) r.buffer.extents.push_back(size);
        else if (axis.remainder) r.buffer.extents.push_back(Expr(axis.factor));
        else r.buffer.extents.push_back(simplify((size + Expr(axis.factor - 1)) / Expr(axis.factor), facts));
    }
    if (depth > 0) r.buffer.space = target.is_gpu() ? space_of(r.buffer) : fits_on_stack(r.buffer) ? Space::stack : Space::workspace;
    realized[result.name] = r;
    return r.buffer;
}

Buffer Nests::allocate_root(const Stage &stage, const Tensor &result) {
    Pieces pieces;
    for (const std::string &d : result.dims) pieces[d] = whole(d, {});
    return allocate(stage, result, pieces, 0);
}

std::vector<Expr> Nests::locate(const Realized &where, const std::vector<Expr> &index) const {
    std::vector<Expr> axes;
    for (size_t i = 0; i < index.size(); i++) axes.push_back(simplify(index[i] - where.origin[i], facts));
    if (where.layout.empty()) return axes;
    std::map<std::string, Expr> relative;
    for (size_t i = 0; i < index.size(); i++) relative[where.dims[i]] = axes[i];
    axes.clear();
    for (const LayoutAxis &axis : where.layout) {
        Expr e = relative.at(axis.dim);
        if (axis.factor) e = simplify(axis.remainder ? e % Expr(axis.factor) : e / Expr(axis.factor), facts);
        axes.push_back(e);
    }
    return axes;
}

std::vector<Expr> Nests::locate_at(const Realized &where, std::vector<Expr> index, const std::map<std::string, Expr> &at) const {
    for (Expr &i : index) i = at_point(i, at);
    return locate(where, index);
}

}  // namespace tessera

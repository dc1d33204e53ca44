#include <algorithm>

#include "compiler/lower/nest_state.h"
#include "schedules/knobs/pieces.h"
#include "support/text/error.h"

namespace tessera {

Nests::Nests(const Algorithm &a, const KnobsByStage &s, const Target &t, bool tells_borders_apart)
    : algorithm(a), schedule(s), target(t), borders(tells_borders_apart), facts(a.dims) {
    for (const Dim &d : a.dims) names.insert(d.name);
    for (const Tensor &tensor : a.tensors) names.insert(tensor.name);
    for (const Stage &stage : a.stages) {
        names.insert(stage.name);
        Seen &own = seen[&stage];
        own.results = results_of(stage);
        for (const Tensor &tensor : own.results) names.insert(tensor.name), producers.emplace(tensor.name, &stage);
        for (const Expr &e : expressions_of(stage))
            walk(e, [&](const Expr &n) {
                if (n.kind() == ExprKind::load) own.loads.push_back(n);
            });
        if (!is_fold(stage)) continue;
        const Monoid &monoid = monoid_of(stage);
        own.order = fold_order(monoid);
        for (size_t part = 0; part < monoid.parts.size(); part++) own.invariants.push_back(invariants_of(monoid, part, inputs_of(stage)));
    }
}

const Knobs &Nests::knobs_of(const std::string &stage) const {
    static const Knobs none;
    if (auto own = shared_out.find(stage); own != shared_out.end()) return own->second;
    auto it = schedule.find(stage);
    return it == schedule.end() ? none : it->second;
}

std::string Nests::unique(const std::string &name) {
    std::string candidate = name;
    for (int n = 2; !names.insert(candidate).second; n++) candidate = name + std::to_string(n);
    made.push_back(candidate);
    return candidate;
}

std::string Nests::plain(const std::string &dim) const { return name_in_schedules(dim, algorithm); }

std::vector<std::string> Nests::forget_names(size_t count) {
    std::vector<std::string> forgotten(made.begin() + static_cast<std::ptrdiff_t>(count), made.end());
    for (const std::string &name : forgotten) names.erase(name);
    made.resize(count);
    return forgotten;
}

Expr Nests::extent_of(const std::string &dim) const {
    const Dim &d = algorithm.dim(dim);
    if (d.kind == DimKind::fixed) return Expr(d.value);
    if (!d.equals.empty()) return extent_of(d.equals);
    if (d.kind == DimKind::symbolic) return extent(dim);
    return resolve(d.size);
}

Expr Nests::written_out(const Expr &e) const {
    return replace_extents(e, [&](const Expr &n) {
        const Dim &d = algorithm.dim(n->name);
        return d.kind == DimKind::symbolic && d.equals.empty() ? Expr() : extent_of(n->name);
    });
}

Expr Nests::resolve(const Expr &e) const { return simplify(written_out(e), facts); }

// Extents first: that of a ragged dim is an expression of outer dims.
Expr Nests::at_point(const Expr &e, const std::map<std::string, Expr> &at) const { return simplify(substitute(written_out(e), at), facts); }

// The whole of a dim. A ragged dim's size needs the outer indices, whose pieces must be single points; its `most` is
// what holds for all of them.
Piece Nests::whole(const std::string &dim, const Pieces &outer) const {
    Expr size = extent_of(dim);
    Piece p{Expr(0), size, size, false, {}, 0};
    std::set<std::string> used = variables_in(size);
    if (used.empty()) return p;
    std::map<std::string, Expr> point;
    Bounds range = facts;
    std::set<std::string> free;
    for (const std::string &name : used) {
        if (!algorithm.find_dim(name)) continue;
        auto it = outer.find(name);
        if (it != outer.end() && it->second.size.is_constant(1)) point[name] = it->second.lo;
        else p.size = Expr();
        range.set(name, Expr(0), extent_of(name) - 1);
        free.insert(name);
    }
    p.most = upper_bound(size, range, free);
    if (p.most.defined() && !variables_in(p.most).empty()) p.most = Expr();
    if (p.most.defined() && has_load(p.most)) p.most = Expr();
    if (p.size.defined()) {
        Expr at_point = substitute(size, point);
        p.size = simplify(replace_loads(at_point,
                                        [&](const Expr &n) -> Expr {
                                            if (!realized.count(n->name)) return {};
                                            return load(realized.at(n->name).buffer.name, n.type(), locate(realized.at(n->name), n->args));
                                        }),
                          facts);
    }
    return p;
}

void Nests::add_argument(const Tensor &tensor, bool roomy) {
    Realized r;
    r.roomy = roomy;
    r.buffer = {tensor.name, tensor.dtype, {}, tensor.role == Role::constant ? Space::constant : Space::argument};
    for (const std::string &d : tensor.dims) {
        r.buffer.extents.push_back(extent_of(d));
        r.origin.push_back(Expr(0));
    }
    r.dims = tensor.dims;
    realized[tensor.name] = r;
}

Buffer Nests::allocate_result(const Tensor &tensor) {
    add_argument(tensor);
    Buffer &buffer = realized.at(tensor.name).buffer;
    buffer.space = Space::workspace;
    return buffer;
}

const Realized *Nests::find(const std::string &tensor) const {
    auto it = realized.find(tensor);
    return it == realized.end() ? nullptr : &it->second;
}

std::optional<int64_t> Nests::tile_of(const Stage &stage, const LoopName &loop) const {
    const Knobs &k = knobs_of(stage.name);
    auto find = [&](const Extents &extents) -> std::optional<int64_t> {
        auto it = extents.find(loop.dim);
        if (it == extents.end()) return std::nullopt;
        return it->second;
    };
    if (loop.level == "block") return find(k.block);
    if (loop.level == "k") return find(k.k);
    if (loop.level == "micro") return find(k.micro);
    auto level = k.levels.find(loop.level);
    return level == k.levels.end() ? std::nullopt : find(level->second);
}

std::vector<LoopName> Nests::loops_of(const Stage &stage) const {
    const Knobs &k = knobs_of(stage.name);
    std::vector<std::string> folded = reduced_dims(stage);
    std::string last = std::holds_alternative<Scan>(stage.body) ? std::get<Scan>(stage.body).dim : "";
    std::vector<LoopName> loops;
    auto tiled = [&](const std::string &d) {
        bool in_level = k.block.count(d) || k.k.count(d) || k.micro.count(d);
        for (auto &[name, extents] : k.levels) in_level |= extents.count(d) > 0;
        return in_level;
    };
    auto has_point = [&](const std::string &d) {
        return std::any_of(loops.begin(), loops.end(), [&](const LoopName &l) { return l.level.empty() && l.dim == d; });
    };
    auto is_folded = [&](const std::string &d) { return std::find(folded.begin(), folded.end(), d) != folded.end(); };
    if (k.loops.empty()) {
        bool any_tile = !k.block.empty() || !k.micro.empty();
        auto level = [&](const std::string &name, const Extents &extents, const std::vector<std::string> &dims) {
            for (const std::string &d : dims)
                if (extents.count(d) && d != last) loops.push_back({name, d});
        };
        for (const std::string &d : stage.dims)
            if (any_tile && !tiled(d) && !k.vector.count(d) && d != last) loops.push_back({"", d});
        level("block", k.block, stage.dims);
        level("k", k.k, folded);
        for (auto &[name, extents] : k.levels) level(name, extents, stage.dims), level(name, extents, folded);
        if (!target.is_gpu()) level("micro", k.micro, stage.dims);  // there it is a thread's part of a block's tile
    }
    for (const std::string &text : k.loops)
        loops.push_back(parse_loop(text, [&](const std::string &d) { return algorithm.find_dim(d) != nullptr; }));
    auto end_of_spatial = std::find_if(loops.begin(), loops.end(), [&](const LoopName &l) { return l.level.empty() && is_folded(l.dim); });
    std::vector<LoopName> missing;
    for (int vectors = 0; vectors < 2; vectors++)
        for (const std::string &d : stage.dims)
            if (!has_point(d) && !(target.is_gpu() ? k.block : k.micro).count(d) && (k.vector.count(d) > 0) == (vectors == 1) && d != last)
                missing.push_back({"", d});
    loops.insert(end_of_spatial, missing.begin(), missing.end());
    if (!last.empty()) loops.push_back({"", last});
    for (const std::string &d : folded)
        if (!has_point(d)) loops.push_back({"", d});
    return loops;
}

TileBody Nests::realize(const Stage &stage, const Pieces &pieces, int depth) {
    State state;
    state.stage = &stage;
    state.knobs = &knobs_of(stage.name);
    state.loops = loops_of(stage);
    state.pieces = pieces;
    state.depth = depth;
    state.fold_at = state.loops.size();
    auto spatial = [&](const LoopName &l) { return std::find(stage.dims.begin(), stage.dims.end(), l.dim) != stage.dims.end(); };
    if (std::holds_alternative<Reduce>(stage.body)) {
        state.fold_at = 0;
        for (size_t i = 0; i < state.loops.size(); i++)
            if (spatial(state.loops[i])) state.fold_at = i + 1;
    } else if (std::holds_alternative<Scan>(stage.body)) {
        state.fold_at = state.loops.size() - 1;
    }
    auto is_parallel = [&](const LoopName &l) {
        auto &p = state.knobs->parallel;
        return std::find(p.begin(), p.end(), l.text()) != p.end() ||
               (!l.level.empty() && std::find(p.begin(), p.end(), l.level) != p.end());
    };
    if (!state.knobs->parallel.empty()) {
        while (state.parallel < state.loops.size() && is_parallel(state.loops[state.parallel])) state.parallel++;
        size_t total = std::count_if(state.loops.begin(), state.loops.end(), is_parallel);
        auto refuse = [&](const std::string &why) {
            std::vector<std::string> order;
            for (const LoopName &l : state.loops) order.push_back(l.text());
            throw UserError("schedule.parallel", stage.name + ": the loops " + join(state.knobs->parallel) + " cannot be parallel: " + why +
                                                     "; the stage's loops are, outermost first, " + join(order) + ".");
        };
        if (total == 0 || total != state.parallel) refuse("parallel loops must be the outermost ones");
        if (depth > 0) refuse("the stage is placed inside another stage's loops; only a stage at root has parallel loops");
        for (size_t i = 0; i < state.parallel; i++)
            if (!spatial(state.loops[i]) || (std::holds_alternative<Scan>(stage.body) && i >= state.fold_at))
                refuse("'" + state.loops[i].text() + "' carries the fold; split the reduction across threads instead");
        if (std::holds_alternative<Update>(stage.body)) check_update_is_parallel(state);
    }
    // Blocks of a GPU: the outermost loops of a stage at root that write apart.
    while (target.is_gpu() && depth == 0 && state.parallel < std::min(state.fold_at, state.loops.size())) {
        const std::string &dim = state.loops[state.parallel].dim;
        if (!spatial(state.loops[state.parallel]) || !writes_apart(stage, dim)) break;
        state.parallel++;
    }
    return emit(state, 0);
}

// Parallel iterations of an Update must write apart: each parallel dim must be an index of the state by itself.
bool Nests::writes_apart(const Stage &stage, const std::string &dim) {
    auto *update = std::get_if<Update>(&stage.body);
    return !update || std::any_of(update->index.begin(), update->index.end(),
                                  [&](const Expr &e) { return e.kind() == ExprKind::variable && e->name == dim; });
}

void Nests::check_update_is_parallel(const State &state) const {
    for (size_t i = 0; i < state.parallel; i++)
        if (const std::string &dim = state.loops[i].dim; !writes_apart(*state.stage, dim))
            throw UserError("schedule.parallel", state.stage->name + ": iterations of '" + dim + "' may write the same element of '" +
                                                     std::get<Update>(state.stage->body).state +
                                                     "', so they cannot run in parallel; parallel dims of an update are those that "
                                                     "index its state directly.");
}

TileBody Nests::root(const Stage &stage) {
    shared_left = target.shared_bytes;
    at_root = &stage;
    if (auto *reduce = std::get_if<Reduce>(&stage.body); reduce && !reduce->at.empty()) return scatter(stage, *reduce);
    Pieces pieces;
    for (const std::string &d : stage.dims) {
        Piece p = whole(d, pieces);
        if (p.size.defined()) pieces[d] = p;
    }
    if (target.is_gpu()) share_out(stage, pieces, true);
    return realize(stage, pieces, 0);
}

TileBody Nests::emit(const State &state, size_t position) {
    if (position == state.fold_at && !state.folding && is_fold(*state.stage)) return fold_begin(state, position);
    if (position == state.loops.size()) return leaf(state);
    return emit_loop(state, position);
}

Piece Nests::whole_at_loop(const Stage &stage, const std::string &dim, const Pieces &outer) const {
    Piece p = whole_under_where(stage, dim, outer);
    if (!p.size.defined())
        throw UserError("schedule.ragged", stage.name + ": the size of dim '" + dim + "' varies with outer indices (" +
                                               brief(extent_of(dim)) +
                                               "), so their loops must go point by point outside it; do not tile or vectorise those dims.");
    return p;
}

// What is known inside a loop is not so after it: a loop that does not run shows nothing about extents.
TileBody Nests::emit_loop(const State &state, size_t position) {
    const Bounds outside = facts;
    const size_t open = around.size();
    TileBody body = loop_at(state, position);
    facts = outside;
    around.resize(open);
    return body;
}

TileBody Nests::loop_at(const State &before, size_t position) {
    State state = before;
    const LoopName &loop = state.loops[position];
    if (!state.pieces.count(loop.dim)) state.pieces[loop.dim] = whole_at_loop(*state.stage, loop.dim, state.pieces);
    std::optional<int64_t> tile = tile_of(*state.stage, loop);
    if (tile) return emit_tiles(std::move(state), position, *tile);
    auto lanes = state.knobs->vector.find(loop.dim);
    bool spatial = position < state.fold_at || !is_fold(*state.stage);
    if (spatial && lanes != state.knobs->vector.end()) return emit_vectors(std::move(state), position, lanes->second);
    return emit_points(state, position);
}

}  // namespace tessera

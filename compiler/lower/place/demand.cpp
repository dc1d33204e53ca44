#include "compiler/lower/place/demand.h"

#include <algorithm>

#include "algorithms/index/own_point.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/live_part.h"
#include "compiler/lower/place/owned.h"
#include "compiler/lower/place/storage.h"

namespace tessera {

static std::vector<std::string> dims_of_result(const Lowering &lowering, const Stage &stage, const std::string &tensor) {
    for (const Tensor &t : lowering.results(stage))
        if (t.name == tensor) return t.dims;
    return {};
}

// Whether the index has other values in other iterations of the loops around.
static bool moves_with_loops(const Expr &index, const Pieces &pieces) {
    const std::set<std::string> used = variables_in(index);
    return std::any_of(used.begin(), used.end(), [&](const std::string &name) {
        auto piece = pieces.find(name);
        return piece != pieces.end() && !variables_in(piece->second.lo).empty();
    });
}

// An index that data says, where the dims that it uses have one point each: it has one value, which is read where it is stored.
static Expr at_points(const Scope &scope, const Expr &index, const Pieces &pieces) {
    if (!has_load(index)) return index;
    std::map<std::string, Expr> points;
    bool there = true;
    for (const auto &[dim, piece] : pieces)
        if (piece.size.defined() && piece.size.is_constant(1) && !piece.padded) points[dim] = piece.lo;
    const Expr located = replace_loads(substitute(index, points), [&](const Expr &n) -> Expr {
        const Stored *where = scope.find(n->name);
        there &= where && !where->by_points && !n->guarded;
        if (!there) return {};
        return load(where->buffer.name, n.type(), locate(*where, n->args, scope.facts));
    });
    return there ? simplify(located, scope.facts) : index;
}

// What the load needs of a producer's dims where the loading stage's dims are those pieces.
static std::vector<Piece> box_of(const Lowering &lowering, const Scope &scope, const Expr &load, const Stage &producer,
                                 const Pieces &pieces) {
    const Bounds &facts = scope.facts;
    const std::vector<std::string> dims = dims_of_result(lowering, producer, load->name);
    const std::vector<Expr> element = index_of(load), own = own_point(lowering.algorithm, producer, element);
    if (own.empty())
        // What is at root is there as a whole; who places it says that it cannot (index_along).
        return std::vector<Piece>(dims.size());
    std::vector<Piece> box;
    Pieces needed;
    for (size_t i = 0; i < dims.size(); i++) {
        const std::string &d = dims[i];
        const Expr index = at_points(scope, resolve(lowering, scope, own[i]), pieces);
        Piece p = span(index, pieces, facts);
        const bool begins = scanned_dim(producer) == d && !goes_on(lowering, scope, producer);
        if (!p.size.defined() || variables_in(p.lo).count(d)) p = whole(lowering, scope, d, pieces), p.whole = true;
        // A scan starts at its start.
        else if (begins && variables_in(p.lo).empty()) p = whole(lowering, scope, d, needed), p.whole = true;
        p.again = begins && moves_with_loops(index, pieces);
        // What lies outside of the tensor is never needed, even where the load says so only by its fold's condition.
        const Expr all = whole(lowering, scope, d, needed).size;
        if (p.padded && all.defined()) p.limit = p.limit.defined() ? simplify(min(p.limit, all), facts) : all;
        if (all.defined() && p.size.defined() && (load->guarded || (!p.padded && !prove(p.lo + p.size <= all, facts)))) {
            const Expr end = simplify(min(p.lo + p.size, all), facts);
            p.lo = simplify(max(p.lo, Expr(0)), facts);
            p.size = simplify(max(end - p.lo, Expr(0)), facts);
            // Where nothing is needed although the padded tile reaches into the tensor, its first point is there to be read.
            if (p.padded) p.limit = simplify(max(p.limit, p.lo + 1), facts);
        }
        box.push_back(p);
        needed[d] = p;
    }
    return box;
}

void add_needed(const Lowering &lowering, const Scope &scope, const Stage &stage, Pieces pieces, Regions &regions) {
    for (const std::string &d : reduced_dims(stage))
        if (!pieces.count(d)) {
            Piece p = whole_under_where(lowering, scope, stage, d, pieces);
            if (!p.size.defined()) p.size = p.max_size;
            pieces[d] = p;
        }
    if (is_fold(stage))
        for (const Part &part : monoid_of(stage).parts)
            for (const std::string &d : part.dims) pieces[d] = whole(lowering, scope, d, {});
    for (const Expr &n : lowering.facts(stage).loads) {
        auto made_by = lowering.producers.find(n->name);
        if (made_by == lowering.producers.end()) continue;
        const std::vector<Piece> box = box_of(lowering, scope, n, *made_by->second, pieces);
        auto [it, is_new] = regions.emplace(n->name, box);
        for (size_t i = 0; !is_new && i < box.size(); i++) {
            auto end = [](const Piece &p) { return p.padded ? p.limit : p.lo + p.size; };
            const Piece earlier = it->second[i];  // of unknown size perhaps, and then nothing is padded
            it->second[i] = unite(earlier, box[i], scope.facts);
            if (it->second[i].padded) it->second[i].limit = simplify(max(end(earlier), end(box[i])), scope.facts);
        }
    }
}

void add_needed_by_placed(const Lowering &lowering, const Scope &scope, Regions &regions) {
    const auto stages = lowering.algorithm.stages();
    for (auto it = stages.rbegin(); it != stages.rend(); ++it) {
        const Knobs &k = lowering.knobs(it->name);
        if (!k.place || k.place->kind != Place::Kind::at) continue;
        for (const Tensor &t : lowering.results(*it)) {
            auto found = regions.find(t.name);
            if (found == regions.end() || scope.find(t.name)) continue;
            Pieces of_stage;
            for (size_t i = 0; i < it->dims.size(); i++) of_stage[it->dims[i]] = found->second[i];
            add_needed(lowering, scope, *it, of_stage, regions);
        }
    }
}

Regions regions_needed(const Lowering &lowering, const Cursor &at, const Scope &scope) {
    Regions needed;
    Pieces pieces = at.pieces;
    if (is_by_warps(at.nest->step))
        for (auto &[dim, piece] : pieces) piece.zeros = piece.padded;
    for (const auto &[dim, runs] : at.runs) pieces[dim] = whole(lowering, scope, dim, pieces);
    add_needed(lowering, scope, at.stage(), pieces, needed);
    for (const Owned &owned : owned_in(lowering, *at.nest))
        if (owned.position >= at.position) add_needed(lowering, scope, *owned.stage, owned_pieces(at, owned), needed);
    add_needed_by_placed(lowering, scope, needed);
    return needed;
}

Pieces pieces_of(const Lowering &lowering, const Scope &scope, const Stage &stage, const Regions &needed) {
    Pieces pieces;
    for (const Tensor &result : lowering.results(stage)) {
        auto found = needed.find(result.name);
        if (found == needed.end()) continue;
        for (size_t i = 0; i < stage.dims.size(); i++) {
            auto [it, is_new] = pieces.emplace(stage.dims[i], found->second[i]);
            if (!is_new) it->second = unite(it->second, found->second[i], scope.facts);
        }
    }
    return pieces;
}

bool have_sizes(const Regions &regions, const Bounds &facts) {
    return std::all_of(regions.begin(), regions.end(), [&](const auto &r) {
        return std::all_of(r.second.begin(), r.second.end(),
                           [&](const Piece &p) { return !p.size.defined() || prove(p.size >= Expr(0), facts); });
    });
}

}  // namespace tessera

#include "compiler/lower/loops/vector_loops.h"

#include <numeric>

#include "compiler/lower/context/loop.h"
#include "compiler/lower/context/mapping.h"
#include "compiler/lower/loops/point_loops.h"
#include "compiler/lower/loops/versions.h"
#include "compiler/rewrite/choice.h"

namespace tessera {

// Where a value chooses by run which of several things it computes, what it computes at like points of all runs is computed
// together: the loop goes over one of them, in vectors that divide it.
static void join_runs(Cursor &at, int64_t &lanes) {
    Piece &p = at.pieces[at.loop().dim];
    if (!p.lo.is_constant(0) || !p.size.is_constant() || p.padded) return;
    const int64_t length = choice_of(at.stage(), at.loop().dim).run;
    if (length == 0 || p.size->value.integer <= length || p.size->value.integer % length) return;
    at.runs[at.loop().dim] = {p.size->value.integer / length, length};
    p.size = p.max_size = Expr(length);
    lanes = std::gcd(lanes, length);
}

Built over_vectors(const Lowering &lowering, const Cursor &before, const Scope &scope, Names &names, int64_t lanes) {
    Cursor at = before;
    if (lowering.mapping->joins_runs()) join_runs(at, lanes);
    const std::string &dim = at.loop().dim;
    const Piece &p = at.pieces.at(dim);
    auto vector_at = [&](const Expr &start, bool is_padded, const Scope &around) {
        Scope inside = around;
        inside.depth++;
        Cursor cut = at;
        Piece &piece = cut.pieces[dim];
        piece.lo = simplify(p.lo + start, inside.facts);
        piece.size = piece.max_size = Expr(lanes);
        if (is_padded) {
            piece.padded = true, piece.since = inside.depth;
            piece.limit = limit_in(p, inside.facts);
        }
        return inside_loop(lowering, cut, inside, names);
    };
    const bool whole_vectors = is_multiple(p.size, lanes, scope.facts);
    const Expr full = simplify(p.size / Expr(lanes), scope.facts);
    Built built;
    Scope rest = scope;
    if (!full.is_constant(0)) {
        Scope inside = scope;
        const std::string v = open_loop(lowering, at, inside, names);
        const bool once = full.is_constant(1);
        inside.facts.set(v, Expr(0), once ? Expr(0) : full - 1);
        built = loop_of(v, full, kind_at(lowering, at), vector_at(once ? Expr(0) : variable(v) * Expr(lanes), false, inside));
        rest = after_loop(at, scope);
    }
    if (whole_vectors) return built;
    const Expr done = simplify(full * Expr(lanes), scope.facts);
    const Expr some = simplify(done < p.size, scope.facts);
    if (some.is_constant(0)) return built;
    const auto tail = at.nest->knobs.tail.find(dim);
    if (tail != at.nest->knobs.tail.end() && tail->second == Tail::loop) built += points_left(lowering, at, rest, names, done, lanes - 1);
    else built += in_guard(some, vector_at(done, true, rest));
    return built;
}

}  // namespace tessera

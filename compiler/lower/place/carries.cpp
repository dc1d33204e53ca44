#include "compiler/lower/place/carries.h"

#include <algorithm>

#include "compiler/lower/context/loop.h"
#include "compiler/lower/context/stage_nest.h"
#include "compiler/lower/place/demand.h"
#include "support/text/error.h"

namespace tessera {

// Stands for any iteration of a loop that is not open yet.
static const char *const some_point = "some point";

[[noreturn]] static void refuse(const Cursor &at, const Scan &scan, const Stage &stage, const std::string &got) {
    throw UserError("schedule.place", stage.name + ": it is placed inside " + at.stage().name + "." + at.loop().text() +
                                          ", and each iteration there reads another part of '" + scan.dim +
                                          "', along which it scans. Expected a serial loop that goes through all of '" + scan.dim +
                                          "' as the scan does and reads it at the loop's own points, with which the scan goes on; got " +
                                          got +
                                          ", where each iteration would scan from the start again. Place it at such a loop, at a loop "
                                          "outside of all that go along '" +
                                          scan.dim + "', or at root.");
}

// The scans placed at the loop at the cursor, the first of its dim, or at one of those that come right after it along the same dim.
static std::vector<const Stage *> scans_along(const Lowering &lowering, const Cursor &at) {
    const std::vector<LoopName> &loops = at.nest->loops;
    auto is_along = [&](const LoopName &l) { return l.dim == at.loop().dim; };
    const auto here = loops.begin() + static_cast<std::ptrdiff_t>(at.position);
    if (at.fold.begins_carries || std::any_of(loops.begin(), here, is_along)) return {};
    const auto end = static_cast<size_t>(std::find_if_not(here, loops.end(), is_along) - loops.begin());
    std::vector<const Stage *> scans;
    for (const Stage &stage : lowering.algorithm.stages()) {
        const Knobs &k = lowering.knobs(stage.name);
        if (!std::holds_alternative<Scan>(stage.body) || !k.place) continue;
        for (size_t i = at.position; i < end; i++)
            if (is_demanded_at(*k.place, *at.nest, i)) scans.push_back(&stage);
    }
    return scans;
}

// Whether the scan runs in register tiles along the dim that may reach into the tile after the one around them, whose points the scan would
// take twice.
static bool runs_over_ends(const Lowering &lowering, const Cursor &at, const Stage &stage, const std::string &dim) {
    const Knobs &k = at.nest->knobs;
    const auto unit = k.micro.find(dim);
    const Place &place = *lowering.knobs(stage.name).place;
    for (size_t i = at.position; i < at.nest->loops.size(); i++)
        if (is_demanded_at(place, *at.nest, i))
            return at.nest->loops[i].level == "micro" && unit != k.micro.end() && !starts_aligned(k, dim, unit->second);
    return false;
}

// Why the scan cannot go on with the loop at the cursor, in which it needs these pieces at some point; "" where it can.
static std::string why_not(const Lowering &lowering, const Cursor &at, const Scope &scope, const Stage &stage, const Pieces &pieces) {
    const std::string &dim = at.loop().dim;
    const Scan &scan = std::get<Scan>(stage.body);
    const Piece &all = at.pieces.at(dim), &read = pieces.at(scan.dim);
    const bool backward = scan.direction == ScanDirection::backward;
    auto is_zero = [&](const Expr &e) { return simplify(e, scope.facts).is_constant(0); };
    if (kind_at(lowering, at) != LoopKind::serial) return "a parallel loop";
    if (runs_backward(at.stage(), dim) != backward) return "a loop in the other direction";
    if (!read.size.defined() || !read.size.is_constant(1) || !is_zero(read.lo - (all.lo + variable(some_point))))
        return "reads of other points than the loop's own";
    const Expr from = backward ? all.lo + all.size - whole(lowering, scope, scan.dim, pieces).size : all.lo;
    if (!is_zero(from)) return "a loop that does not begin where the scan does";
    if (runs_over_ends(lowering, at, stage, dim)) return "register tiles that do not divide the tiles around them";
    for (const auto &[other, piece] : pieces)
        if (other != scan.dim &&
            (variables_in(piece.lo).count(some_point) || !piece.size.defined() || variables_in(piece.size).count(some_point)))
            return "a loop that reads another part of '" + other + "' in each iteration too";
    return "";
}

// The pieces of what the scan carries; none where its reads do not move along the loop.
static Pieces pieces_carried(const Lowering &lowering, const Cursor &at, const Scope &scope, const Stage &stage) {
    const Scan &scan = std::get<Scan>(stage.body);
    Cursor point = at;
    Piece &along = point.pieces.at(at.loop().dim);
    Scope inside = scope;
    inside.facts.set(some_point, Expr(0), along.size - 1);
    along.lo = along.lo + variable(some_point), along.size = along.max_size = Expr(1), along.padded = false;
    Pieces pieces = pieces_of(lowering, inside, stage, regions_needed(lowering, point, inside));
    if (pieces.empty() || !pieces.at(scan.dim).again || !variables_in(pieces.at(scan.dim).lo).count(some_point)) return {};
    if (const std::string why = why_not(lowering, at, inside, stage, pieces); !why.empty()) refuse(at, scan, stage, why);
    pieces[scan.dim] = Piece{Expr(0), Expr(1), Expr(1), false, {}, 0};
    return pieces;
}

Built with_carries(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names,
                   const std::function<Built(const Scope &inside)> &make_loop) {
    Scope inside = scope;
    std::vector<Buffer> buffers;
    Built built;
    for (const Stage *stage : scans_along(lowering, at)) {
        const Pieces pieces = pieces_carried(lowering, at, scope, *stage);
        if (pieces.empty()) continue;
        const StageNest nest = placed_nest(lowering, *stage, pieces, *at.nest);
        for (size_t p : lowering.facts(*stage).live.stepped) {
            const Tensor &result = lowering.results(*stage)[p];
            Stored stored = store_placed(lowering, scope, *stage, nest.knobs, result, pieces, ".carry", names);
            buffers.push_back(stored.buffer);
            inside.store(carried(result).name, std::move(stored));
        }
        Cursor first;
        first.nest = &nest, first.pieces = pieces, first.fold.begins_carries = true;
        built += build(lowering, first, inside, names);
    }
    built += make_loop(inside);
    return in_allocs(buffers, std::move(built));
}

void check_goes_on(const Cursor &at, const Stage &stage, const Pieces &pieces) {
    auto *scan = std::get_if<Scan>(&stage.body);
    if (!scan) return;
    if (pieces.at(scan->dim).again) refuse(at, *scan, stage, "another place");
}

std::optional<Stored> result_in_carry(const Lowering &lowering, const Scope &scope, const Stage &stage, const Tensor &result,
                                      const Pieces &pieces) {
    auto *scan = std::get_if<Scan>(&stage.body);
    if (!scan || !scan->inclusive || !goes_on(lowering, scope, stage) || !pieces.at(scan->dim).size.is_constant(1)) return std::nullopt;
    Stored stored = scope.at(carried(result).name);
    for (size_t i = 0; i < stored.dims.size(); i++)
        if (stored.dims[i] == scan->dim) stored.origin[i] = pieces.at(scan->dim).lo;
    return stored;
}

}  // namespace tessera

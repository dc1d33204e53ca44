#include "compiler/lower/place/placement.h"

#include <algorithm>
#include <numeric>

#include "algorithms/index/prove.h"
#include "compiler/lower/context/stage_nest.h"
#include "compiler/lower/place/beside.h"
#include "compiler/lower/place/carries.h"
#include "compiler/lower/place/demand.h"
#include "compiler/lower/place/storage.h"
#include "compiler/lower/place/streams.h"
#include "support/text/error.h"

namespace tessera {

bool has_producers(const Lowering &lowering, const Cursor &at) {
    for (const Stage &stage : lowering.algorithm.stages()) {
        const Knobs &k = lowering.knobs(stage.name);
        for (size_t i = at.position; k.place && i < at.nest->loops.size(); i++)
            if (is_demanded_at(*k.place, *at.nest, i) || is_owned_at(*k.place, *at.nest, i)) return true;
    }
    return false;
}

static std::string text_of_place(const Cursor &at) { return at.stage().name + "." + at.loop().text(); }

// What is placed in an update's loops reads the state as it was before: of what earlier iterations wrote, nothing.
static void check_reads_of_update(const Lowering &lowering, const Cursor &at, const Stage &placed, const Pieces &pieces,
                                  const Stage &root) {
    for (const Write *update : writes_of(root))
        for (const Expr &read : lowering.facts(placed).loads) {
            if (read->name != update->state) continue;
            auto refuse = [&] {
                throw UserError("schedule.order", placed.name + ": it reads the state '" + update->state +
                                                      "' as it is before the update '" + root.name + "', and at " + text_of_place(at) +
                                                      " what it reads (" + brief(read) +
                                                      ") may have been written by earlier iterations. Place it further out, or at root.");
            };
            if (!at.nest->is_at_root()) refuse();
            for (size_t i = 0; i <= at.position; i++) {
                const std::string &dim = at.nest->loops[i].dim;
                auto axis = std::find_if(update->index.begin(), update->index.end(),
                                         [&](const Expr &e) { return e.kind() == ExprKind::variable && e->name == dim; });
                if (axis == update->index.end() || !is_spatial(placed, dim)) refuse();
                const Expr &element = read->args[static_cast<size_t>(axis - update->index.begin())];
                const Piece &own = at.pieces.at(dim), &needed = pieces.at(dim);
                if (element.kind() != ExprKind::variable || element->name != dim || !equal(needed.lo, own.lo) || !needed.size.defined() ||
                    !equal(needed.size, own.size))
                    refuse();
            }
        }
}

// Whether no piece is empty.
static Expr has_points(const Pieces &pieces, const Bounds &facts) {
    Expr all = constant_int(DType::boolean, 1);
    for (const auto &[dim, piece] : pieces)
        if (piece.size.defined()) all = all && simplify(piece.size >= Expr(1), facts);
    return simplify(all, facts);
}

// Whether warps read fragments of it, as it was packed for.
static bool is_packed_for_warps(const Cursor &at, const Stage &stage) {
    const auto &packs = at.nest->knobs.pack;
    return is_by_warps(at.nest->step) && std::any_of(packs.begin(), packs.end(), [&](const auto &p) {
               return stage.name == at.stage().name + "." + p.first + ".packed";
           });
}

// Eight rows' chunks of 16 bytes at one place lie in all banks: those of fragments, which a warp loads at once.
static std::optional<Swizzle> swizzle_of(const Buffer &buffer) {
    constexpr int64_t chunk = 16, at_once = 8;
    const Expr &row = buffer.extents.back();
    const int64_t each = size_of(buffer.dtype);
    if (buffer.space != Space::shared || !row.is_constant() || row->value.integer * each % chunk) return {};
    const int64_t rows = std::gcd(row->value.integer * each / chunk, at_once);
    if (rows == 1) return {};
    return Swizzle{chunk / each, rows, at_once / rows};
}

// The stage's nest at the loop, in storage that `scope` then knows and `buffers` has.
static Built place(const Lowering &lowering, const Cursor &at, const Stage &stage, const Regions &needed, Scope &scope,
                   std::vector<Buffer> &buffers, Names &names) {
    if (scatters(stage))
        throw UserError("schedule.place", stage.name +
                                              ": it folds to a computed destination, which may be anywhere in its result. Place it "
                                              "at root.");
    Pieces pieces = pieces_of(lowering, scope, stage, needed);
    if (pieces.empty())
        throw UserError("schedule.place", stage.name + ": it is placed at " + text_of_place(at) +
                                              ", and nothing there loads it; place it where its consumer is.");
    const bool has_zeros = std::any_of(pieces.begin(), pieces.end(), [](const auto &p) { return p.second.padded && p.second.zeros; });
    const auto *map = std::get_if<Map>(&stage.body);
    if (has_zeros && (!map || map->values.size() > 1))
        throw UserError("schedule.place",
                        stage.name + ": it is placed at " + text_of_place(at) +
                            ", where warps read fragments of it with zeros past its end; expected a stage of one value for "
                            "each point. Place it further out, and pack it there.");
    const Stage &root = *at.nest->root;
    check_reads_of_update(lowering, at, stage, pieces, root);
    if (auto beside = lowering.beside.find(root.name); beside != lowering.beside.end())
        for (const Stage *other : beside->second) check_reads_of_update(lowering, at, stage, pieces, *other);
    check_goes_on(at, stage, pieces);
    const StageNest nest = placed_nest(lowering, stage, pieces, *at.nest);
    for (const Tensor &result : lowering.stored_results(stage)) {
        if (const std::optional<Stored> carried = result_in_carry(lowering, scope, stage, result, pieces)) {
            scope.store(result.name, *carried);
            continue;
        }
        Stored stored = store_placed(lowering, scope, stage, nest.knobs, result, pieces, ".tile", names);
        if (is_packed_for_warps(at, stage)) stored.buffer.swizzle = swizzle_of(stored.buffer);
        buffers.push_back(stored.buffer);
        scope.store(result.name, std::move(stored));
    }
    // The size of a ragged dim is known where its loop begins.
    std::erase_if(pieces, [](const auto &p) { return !p.second.size.defined(); });
    Cursor first;
    first.nest = &nest, first.pieces = std::move(pieces);
    return build(lowering, first, scope, names);
}

// Those that are computed at the loop for what it contains. Of a piece of no points a window spans less than nothing, so nothing is
// computed for it.
static Built place_all(const Lowering &lowering, const Cursor &at, const std::vector<const Stage *> &demanded, const Regions &needed,
                       const Expr &some, Scope &scope, std::vector<Buffer> &buffers, Names &names) {
    Built built;
    for (const Stage *stage : demanded) built += place(lowering, at, *stage, needed, scope, buffers, names);
    return demanded.empty() || some.is_constant() ? std::move(built) : in_guard(some, std::move(built));
}

Built with_placed(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    Cursor next = at;
    next.position++;
    if (at.fold.begins_carries) return build(lowering, next, scope, names);  // nothing is computed yet
    auto rest_of_nest = [&](const Scope &inside) { return build(lowering, next, inside, names); };
    const std::vector<Owned> all = owned_in(lowering, *at.nest);
    std::vector<Owned> first, last;
    for (const Owned &owned : all)
        if (owned.position == at.position) (owned.comes_first ? first : last).push_back(owned);
    std::vector<const Stage *> demanded;
    for (const Stage &stage : lowering.algorithm.stages()) {
        const Knobs &k = lowering.knobs(stage.name);
        if (k.place && is_demanded_at(*k.place, *at.nest, at.position)) demanded.push_back(&stage);
    }
    if (demanded.empty() && first.empty() && last.empty()) return with_stream(lowering, at, scope, names, rest_of_nest);
    Regions needed = regions_needed(lowering, at, scope);
    const Expr some = have_sizes(needed, scope.facts) ? constant_int(DType::boolean, 1) : has_points(at.pieces, scope.facts);
    Scope inside = scope;
    if (!some.is_constant()) inside.facts.assume(some), needed = regions_needed(lowering, at, inside);
    check_reads_beside(lowering, at, inside, all, needed);
    Built built;
    std::vector<Buffer> buffers;
    auto next_demanded = demanded.begin();
    for (const Owned &owned : first) {
        const auto end = std::find_if(next_demanded, demanded.end(), [&](const Stage *s) { return s > owned.stage; });
        built += place_all(lowering, at, {next_demanded, end}, needed, some, inside, buffers, names);
        next_demanded = end;
        Scope outside = inside;
        outside.facts = scope.facts;
        built += build_beside(lowering, at, owned, outside, names);
    }
    built += place_all(lowering, at, {next_demanded, demanded.end()}, needed, some, inside, buffers, names);
    inside.facts = scope.facts;
    built += with_stream(lowering, at, inside, names, rest_of_nest);
    for (const Owned &owned : last) built += build_beside(lowering, at, owned, inside, names);
    return in_allocs(buffers, std::move(built));
}

}  // namespace tessera

#include "compiler/lower/place/owned.h"

#include <algorithm>

#include "algorithms/transform/given_extents.h"
#include "compiler/lower/context/stage_nest.h"
#include "support/text/error.h"

namespace tessera {

void refuse_owned(const Owned &owned, const StageNest &nest, const std::string &why) {
    throw UserError("schedule.place", owned.stage->name + ": it stands beside '" + nest.stage->name + "' in its loop '" +
                                          nest.loops[owned.position].text() + "', " + why);
}

// The stage's dims that loops over the host's dims part: those of the same name, then those of equal extents.
static std::map<std::string, std::string> dims_parted(const Algorithm &a, const Stage &stage, const std::vector<LoopName> &loops) {
    std::vector<std::string> own = stage.dims;
    for (const std::string &d : reduced_dims(stage)) own.push_back(d);
    std::map<std::string, std::string> parted;
    auto take = [&](const LoopName &loop, const auto &fits) {
        if (parted.count(loop.dim)) return;
        const auto dim = std::find_if(own.begin(), own.end(), fits);
        if (dim == own.end()) return;
        parted[loop.dim] = *dim;
        own.erase(dim);
    };
    for (const LoopName &l : loops) take(l, [&](const std::string &d) { return d == l.dim; });
    for (const LoopName &l : loops)
        take(l, [&](const std::string &d) { return root_of(a, a.dim(d)).name == root_of(a, a.dim(l.dim)).name; });
    return parted;
}

static void check_loop(const StageNest &nest, const Owned &owned, size_t position) {
    const LoopName &loop = nest.loops[position];
    auto own = owned.dims.find(loop.dim);
    if (own == owned.dims.end())
        refuse_owned(owned, nest,
                     "and its dims, " + join(owned.stage->dims) + ", have none for the loop '" + loop.text() +
                         "' around it: each iteration would compute it again. " +
                         (position == 0 ? "Place it at root." : "Name a loop outside of that, or place it at root."));
    const std::string &dim = own->second;
    if (dim == scanned_dim(*owned.stage))
        refuse_owned(owned, nest, "and scans along '" + dim + "', and each iteration has only a part of that. Place it at root.");
    const auto tail = nest.knobs.tail.find(loop.dim);
    if (tail != nest.knobs.tail.end() && tail->second == Tail::loop)
        refuse_owned(
            owned, nest,
            "and what is left over of '" + loop.dim + "' has a loop of its own (tail). Delete the tail (null), or place it at root.");
    if (folds_over(*owned.stage, dim) && position < nest.parallel)
        refuse_owned(
            owned, nest,
            "and folds over '" + dim +
                "', and parallel iterations each have a part of that: they would write one result together. Split the fold in chunks, or "
                "place it at root.");
}

// What goes on from its result is a fold of parts of one element each, whose elements come in any order or in that of one dim.
static void check_accumulates(const StageNest &nest, const Owned &owned) {
    const Monoid &m = monoid_of(*owned.stage);
    for (const Part &part : m.parts)
        if (!part.dims.empty())
            refuse_owned(owned, nest,
                         "which has parts of its fold, and its part '" + part.name + "' has the dims " + join(part.dims) +
                             ": only parts of one element go on from a result. Place it at root.");
    if (!m.commutative && reduced_dims(*owned.stage).size() > 1)
        refuse_owned(owned, nest,
                     "which has parts of its fold, and '" + m.name +
                         "' is not commutative, so its elements have to come in their order. Place it at root.");
}

std::vector<Owned> owned_in(const Lowering &lowering, const StageNest &nest) {
    std::vector<Owned> all;
    auto beside = lowering.beside.find(nest.stage->name);
    if (beside == lowering.beside.end() || !nest.is_at_root()) return all;
    const Stage *host = lowering.algorithm.find_stage(nest.stage->name);
    for (const Stage *stage : beside->second) {
        const Place &place = *lowering.knobs(stage->name).place;
        Owned owned{stage, 0, stage < host, {}, false};
        while (owned.position < nest.loops.size() && !is_owned_at(place, nest, owned.position)) owned.position++;
        if (owned.position == nest.loops.size())
            throw UserError("schedule.place", stage->name + ": it stands beside '" + nest.stage->name + "' in the loop '" + place.loop +
                                                  "', and there is none; the loops are " + text_of(nest.loops) + ".");
        if (scatters(*stage) || scatters(*host))
            refuse_owned(owned, nest,
                         "and one of them folds to a computed destination, which may be anywhere in its result. Place it at root.");
        if (is_fold(*host) && owned.position >= nest.fold_at)
            refuse_owned(owned, nest, "which is inside the fold. Name a loop outside of it, or place it at root.");
        const std::vector<LoopName> around(nest.loops.begin(), nest.loops.begin() + static_cast<ptrdiff_t>(owned.position) + 1);
        owned.dims = dims_parted(lowering.algorithm, *stage, around);
        for (size_t i = 0; i < around.size(); i++) check_loop(nest, owned, i);
        for (const auto &[hosts, own] : owned.dims) owned.accumulates |= folds_over(*stage, own);
        if (owned.accumulates) check_accumulates(nest, owned);
        all.push_back(owned);
    }
    return all;
}

Pieces owned_pieces(const Cursor &at, const Owned &owned) {
    Pieces pieces;
    for (const auto &[hosts, own] : owned.dims)
        if (auto piece = at.pieces.find(hosts); piece != at.pieces.end()) pieces[own] = piece->second;
    return pieces;
}

}  // namespace tessera

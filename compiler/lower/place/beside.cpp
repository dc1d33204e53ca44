#include "compiler/lower/place/beside.h"

#include <algorithm>

#include "algorithms/index/prove.h"
#include "compiler/lower/context/stage_nest.h"
#include "support/text/error.h"

namespace tessera {

static bool is_within(const Piece &needed, const Piece &own, const Bounds &facts) {
    if (!needed.size.defined() || !own.size.defined()) return false;
    if (equal(needed.lo, own.lo) && equal(needed.size, own.size)) return true;
    return prove(own.lo <= needed.lo, facts) && prove(needed.lo + needed.size <= own.lo + own.size, facts);
}

// Whether the needed region of a result is in the part that belongs to the iteration.
static bool is_made_here(const Tensor &result, const std::vector<Piece> &needed, const Pieces &own, const Bounds &facts) {
    for (size_t i = 0; i < result.dims.size(); i++)
        if (auto piece = own.find(result.dims[i]); piece != own.end() && !is_within(needed[i], piece->second, facts)) return false;
    return true;
}

namespace {

// A read or a write of an element of a state, by a stage whose dims loops of the host part.
struct Access {
    const std::map<std::string, std::string> *dims;  // null: the host's own
    std::vector<Expr> index;
    bool writes;

    // Whether this axis is the stage's dim that loops over the host's dim part.
    bool is_along(const std::string &hosts, size_t axis) const {
        const Expr &e = index[axis];
        return e.kind() == ExprKind::variable && e->name == (dims ? dims->at(hosts) : hosts);
    }
};

// When something runs: a stage beside the host, the rest of the host's loops, or what is computed in one of them for its readers.
struct Turn {
    const Stage *stage = nullptr;
    const Owned *owned = nullptr;  // it, or the one in whose loops it stands
    size_t position = 0;           // of the host's loop
    bool is_demanded = false;
};

}  // namespace

static std::vector<Access> accesses_of(const Lowering &lowering, const Stage &stage, const Owned *owned, const std::string &state) {
    std::vector<Access> all;
    const auto *dims = owned ? &owned->dims : nullptr;
    for (const Expr &read : lowering.facts(stage).loads)
        if (read->name == state) all.push_back({dims, read->args, false});
    for (const Write *write : writes_of(stage))
        if (write->state == state) all.push_back({dims, write->index, true});
    return all;
}

// Whether accesses in different iterations of the loop are to different elements: some axis is the loop's dim in both.
static bool are_apart(const std::string &loop_dim, const Access &a, const Access &b) {
    for (size_t i = 0; i < std::min(a.index.size(), b.index.size()); i++)
        if (a.is_along(loop_dim, i) && b.is_along(loop_dim, i)) return true;
    return false;
}

// From two stages in the loops, the one with loops of the host around both: none writes what the other has in another iteration.
static void check_states(const Lowering &lowering, const StageNest &nest, const Owned &owned, const Stage &other, const Owned *others) {
    const size_t loops = std::min(owned.position, others ? others->position : owned.position) + 1;
    auto check = [&](const Stage &writer, const Owned *writers, const Stage &reader, const Owned *readers) {
        for (const Write *write : writes_of(writer))
            for (const Access &access : accesses_of(lowering, reader, readers, write->state))
                for (size_t i = 0; i < loops; i++)
                    if (!are_apart(nest.loops[i].dim, {writers ? &writers->dims : nullptr, write->index, true}, access))
                        throw UserError("schedule.order", owned.stage->name + ": beside '" + nest.stage->name + "' in its loop '" +
                                                              nest.loops[owned.position].text() + "', '" + writer.name +
                                                              "' may write elements of the state '" + write->state + "' that '" +
                                                              reader.name + "' " + (access.writes ? "writes" : "reads") +
                                                              " in another iteration. Place it at root.");
    };
    check(*owned.stage, &owned, other, others);
    check(other, others, *owned.stage, &owned);
}

static bool reads_result(const Lowering &lowering, const Stage &reader, const Stage &maker) {
    const std::vector<Tensor> &results = lowering.results(maker);
    const std::vector<Expr> &loads = lowering.facts(reader).loads;
    return std::any_of(loads.begin(), loads.end(), [&](const Expr &read) {
        return std::any_of(results.begin(), results.end(), [&](const Tensor &t) { return t.name == read->name; });
    });
}

// Whether the two have to run in the order of the program.
static bool are_ordered(const Lowering &lowering, const Stage &later, const Stage &earlier) {
    if (reads_result(lowering, later, earlier)) return true;
    for (const auto &[a, b] : {std::pair(&later, &earlier), std::pair(&earlier, &later)})
        for (const Write *write : writes_of(*a))
            if (!accesses_of(lowering, *b, nullptr, write->state).empty()) return true;
    return false;
}

// Whether the one has run when the other does. Before the rest of an outer loop's body, those of the outer loop come first; after it, last.
// What is computed for its readers comes before the rest, in the order of the program with what stands beside at the same loop.
static bool runs_before(const Turn &a, const Turn &b) {
    auto part = [](const Turn &r) { return r.owned ? (r.owned->comes_first ? 0 : 2) : r.is_demanded ? 0 : 1; };
    if (part(a) != part(b)) return part(a) < part(b);
    if (a.position != b.position) return part(a) == 2 ? a.position > b.position : a.position < b.position;
    if (a.owned && a.owned == b.owned && a.is_demanded != b.is_demanded) return a.is_demanded;  // in the loops of the other
    return a.stage < b.stage;
}

// Where a stage runs that is placed in loops of the nest, or in those of what runs there; nothing where it runs elsewhere.
static std::optional<Turn> place_in(const Lowering &lowering, const StageNest &nest, const std::vector<Owned> &all, const Stage &stage) {
    const std::optional<Place> &place = lowering.knobs(stage.name).place;
    if (!place || place->kind != Place::Kind::at) return std::nullopt;
    Turn turn{&stage, nullptr, 0, true};
    if (place->stage == nest.stage->name) {
        while (turn.position < nest.loops.size() && !is_demanded_at(*place, nest, turn.position)) turn.position++;
        return turn;
    }
    for (const Owned &owned : all)
        if (place->stage == owned.stage->name) return Turn{&stage, &owned, owned.position, true};
    const Stage *around = lowering.algorithm.find_stage(place->stage);
    if (!around) return std::nullopt;
    std::optional<Turn> outer = place_in(lowering, nest, all, *around);
    if (outer) outer->stage = &stage;
    return outer;
}

void check_order_beside(const Lowering &lowering, const StageNest &nest, const std::vector<Owned> &all) {
    if (all.empty()) return;
    const Stage *host = lowering.algorithm.find_stage(nest.stage->name);
    std::vector<Turn> everything;
    for (const Stage &stage : lowering.algorithm.stages()) {
        auto owned = std::find_if(all.begin(), all.end(), [&](const Owned &o) { return o.stage == &stage; });
        if (owned != all.end()) everything.push_back({&stage, &*owned, owned->position, false});
        else if (&stage == host) everything.push_back({host, nullptr, nest.loops.size(), false});
        else if (const std::optional<Turn> turn = place_in(lowering, nest, all, stage)) everything.push_back(*turn);
    }
    for (const Turn &r : everything)
        if (r.is_demanded && !r.owned && r.stage > host)
            throw UserError("schedule.place", r.stage->name + ": it is placed in a loop of '" + host->name +
                                                  "', before which it does not come. Place it in a loop of its reader, or at root.");
    for (const Owned &owned : all) {
        const Turn own{owned.stage, &owned, owned.position, false};
        for (const Turn &other : everything) {
            if (other.stage == owned.stage) continue;
            if (owned.accumulates && reads_result(lowering, *other.stage, *owned.stage))
                refuse_owned(owned, nest,
                             "where it is folded part by part, and '" + other.stage->name + "' reads it before all are. Place it at root.");
            const Turn &earlier = other.stage < owned.stage ? other : own, &later = other.stage < owned.stage ? own : other;
            if (are_ordered(lowering, *later.stage, *earlier.stage) && !runs_before(earlier, later))
                refuse_owned(owned, nest,
                             "and '" + later.stage->name + "' needs '" + earlier.stage->name +
                                 "', which would run after it there. Place both in one loop, or at root.");
            if (!other.is_demanded) check_states(lowering, nest, owned, *other.stage, other.owned);
        }
    }
}

void check_reads_beside(const Lowering &lowering, const Cursor &at, const Scope &scope, const std::vector<Owned> &all,
                        const Regions &needed) {
    const StageNest &nest = *at.nest;
    for (const Owned &owned : all) {
        if (owned.position != at.position) continue;
        const Pieces pieces = owned_pieces(at, owned);
        for (const Tensor &result : lowering.results(*owned.stage))
            if (auto region = needed.find(result.name);
                region != needed.end() && !is_made_here(result, region->second, pieces, scope.facts))
                refuse_owned(owned, nest,
                             "where other points of it are read than belong to the iteration. Place it further out, or at root.");
        Regions read;
        add_needed(lowering, scope, *owned.stage, pieces, read);
        add_needed_by_placed(lowering, scope, read);  // copies of what it packs, for one
        auto check = [&](const Stage &other, const Pieces &own, bool has_ended) {
            for (const Tensor &result : lowering.results(other))
                if (auto region = read.find(result.name);
                    region != read.end() && (!has_ended || !is_made_here(result, region->second, own, scope.facts)))
                    refuse_owned(owned, nest,
                                 "and reads of '" + result.name + "' what is not there yet in the iteration. Place it at root.");
        };
        const bool host_has_ended = std::none_of(nest.loops.begin(), nest.loops.begin() + static_cast<ptrdiff_t>(owned.position) + 1,
                                                 [&](const LoopName &l) { return folds_over(at.stage(), l.dim); });
        check(at.stage(), at.pieces, host_has_ended);
        for (const Owned &other : all)
            if (other.stage != owned.stage && other.position >= at.position) check(*other.stage, owned_pieces(at, other), true);
    }
}

Built build_beside(const Lowering &lowering, const Cursor &at, const Owned &owned, const Scope &scope, Names &names) {
    Cursor first;
    first.pieces = owned_pieces(at, owned);
    first.fold.resumes = owned.accumulates;
    for (const auto &[dim, piece] : first.pieces)
        if (folds_over(*owned.stage, dim) && piece.padded)
            refuse_owned(owned, *at.nest,
                         "and folds over '" + dim +
                             "', whose last tile is rounded up there. Name a loop outside of that, or place it "
                             "at root.");
    const StageNest nest = placed_nest(lowering, *owned.stage, first.pieces, *at.nest);
    first.nest = &nest;
    return build(lowering, first, scope, names);
}

}  // namespace tessera

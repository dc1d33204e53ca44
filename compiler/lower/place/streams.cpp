#include "compiler/lower/place/streams.h"

#include "compiler/lower/context/extents.h"
#include "compiler/lower/place/storage.h"
#include "support/text/error.h"

namespace tessera {

static void check(const Cursor &at) {
    const Stage &stage = at.stage();
    auto refuse = [&](const std::string &why) {
        throw UserError("schedule.stream", stage.name + ": cannot stream what '" + at.loop().text() + "' computes: " + why);
    };
    if (!at.nest->is_at_root())
        refuse("the stage stands in a loop of another, with whose iterations its result comes. Stream the stage at root.");
    if (scatters(stage) || !writes_of(stage).empty()) refuse("it writes to computed positions, anywhere. Delete the knob (null).");
    if (at.position + 1 < at.nest->parallel) refuse("parallel loops stand inside it. Name the innermost of these, or a loop inside them.");
    if (!at.runs.empty())
        refuse("what it computes is chosen by parts of a dim, which are computed together there. Name a loop outside of that dim's.");
    for (const Tensor &result : results_of(stage))
        if (at.nest->knobs.prefetch.count(result.name))
            refuse("'" + result.name + "' is also prefetched, into the caches that it is to pass by. Delete the prefetch (null).");
    if (!stage.rows.empty()) refuse("it keeps rows of segments, whose places data says.");
    if (is_fold(stage) && (at.position >= at.nest->fold_at || !at.fold.earlier.empty()))
        refuse(
            "there its result is not whole: a loop over what it folds stands outside, or the loop is the fold's own. Name a loop outside "
            "of the fold's.");
}

// What is valid of a piece.
static Expr count_of(const Piece &piece, const Bounds &facts) {
    if (!piece.padded) return piece.size;
    return simplify(min(piece.size, piece.limit - piece.lo), facts);
}

// The result's rows, from where it is near to the argument.
static TileBody stream(const Lowering &lowering, const Cursor &at, const Scope &scope, const Tensor &result, const Stored &near,
                       Names &names) {
    const Stored &argument = scope.at(result.name);
    Scope inside = scope;
    std::vector<Expr> index, counts;
    std::vector<std::string> variables;
    for (const std::string &dim : result.dims) {
        const Piece piece = at.pieces.count(dim) ? at.pieces.at(dim) : whole(lowering, scope, dim, at.pieces);
        counts.push_back(count_of(piece, inside.facts));
        variables.push_back(names.unique(lowering.plain(dim) + ".streamed"));
        // Nothing is said of what goes along the row, so that its position stays in sight where one element is all there can be.
        if (variables.size() < result.dims.size()) inside.facts.set(variables.back(), Expr(0), counts.back() - 1);
        index.push_back(simplify(piece.lo + variable(variables.back()), inside.facts));
    }
    const Expr value = load(near.buffer.name, near.buffer.dtype, locate(near, index, inside.facts));
    TileBody body = {tile_node(Copy{argument.buffer.name, locate(argument, index, inside.facts), value, Expr()})};
    for (size_t i = index.size(); i-- > 0;) {
        const bool is_row = i + 1 == index.size() && !counts[i].is_constant(1);  // one element goes as it is
        body = in_loop(variables[i], counts[i], is_row ? LoopKind::streamed : LoopKind::serial, std::move(body));
    }
    return body;
}

Built with_stream(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names,
                  const std::function<Built(const Scope &inside)> &make_rest) {
    if (at.nest->knobs.stream != at.loop().text() || at.fold.begins_carries) return make_rest(scope);
    check(at);
    Scope inside = scope;
    std::vector<Buffer> buffers;
    std::vector<std::pair<Tensor, Stored>> streamed;
    Knobs knobs = at.nest->knobs;
    knobs.layout.clear();  // it is as the argument
    for (const Tensor &result : lowering.stored_results(at.stage())) {
        const Stored &argument = scope.at(result.name);
        if (argument.buffer.space != Space::argument || result.dims.empty()) continue;
        const Stored near = store_placed(lowering, scope, at.stage(), knobs, result, at.pieces, ".near", names);
        buffers.push_back(near.buffer);
        inside.store(result.name, near);
        streamed.emplace_back(result, near);
    }
    if (streamed.empty())
        throw UserError("schedule.stream", at.stage().name + ": cannot stream what it computes: its result is no argument with dims. " +
                                               "Stream a stage that writes one, or delete the knob (null).");
    Built built = make_rest(inside);
    for (const auto &[result, near] : streamed) built += Built(stream(lowering, at, scope, result, near, names));
    return in_allocs(buffers, std::move(built));
}

}  // namespace tessera

// What comes next in a nest: the one place that knows every kind of loop and body (build.h).
#include "compiler/lower/body/fold_body.h"
#include "compiler/lower/body/fold_nest.h"
#include "compiler/lower/body/map_body.h"
#include "compiler/lower/body/prefetches.h"
#include "compiler/lower/body/scatter_body.h"
#include "compiler/lower/context/build.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/stage_nest.h"
#include "compiler/lower/loops/point_loops.h"
#include "compiler/lower/loops/tile_loops.h"
#include "compiler/lower/loops/vector_loops.h"
#include "compiler/lower/place/carries.h"
#include "support/containers/alternatives.h"

namespace tessera {

// What a stage computes at a register tile.
static Built innermost(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    TileBody body = prefetches(lowering, at, scope, names);
    append(body, std::visit(Overloaded{
                                [&](const Map &) { return map_body(lowering, at, scope, names); },
                                [&](const Reduce &) {
                                    return scatters(at.stage()) ? scatter_body(lowering, at, scope, names)
                                                                : fold_body(lowering, at, scope, names);
                                },
                                [&](const Scan &) { return fold_body(lowering, at, scope, names); },
                            },
                            at.stage().body));
    return body;
}

static Built one_loop(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    const LoopName &loop = at.loop();
    const StageNest &nest = *at.nest;
    if (const auto tile = tile_of(nest.knobs, loop)) return over_tiles(lowering, at, scope, names, *tile);
    const bool is_inside_fold = is_fold(at.stage()) && at.position >= nest.fold_at;
    if (const auto lanes = lanes_along(nest.step, loop.dim); lanes && !is_inside_fold)
        return over_vectors(lowering, at, scope, names, *lanes);
    return over_points(lowering, at, scope, names);
}

static Built next_loop(const Lowering &lowering, const Cursor &before, const Scope &scope, Names &names) {
    Cursor at = before;
    const std::string &dim = at.loop().dim;
    if (!at.pieces.count(dim)) at.pieces[dim] = whole_at_loop(lowering, scope, at.stage(), dim, at.pieces);
    return with_carries(lowering, at, scope, names, [&](const Scope &inside) { return one_loop(lowering, at, inside, names); });
}

Built build(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    if (at.position == at.nest->fold_at && !at.fold.begun && is_fold(at.stage()) && !scatters(at.stage()))
        return build_fold(lowering, at, scope, names);
    if (at.position == at.nest->loops.size()) return innermost(lowering, at, scope, names);
    return next_loop(lowering, at, scope, names);
}

}  // namespace tessera

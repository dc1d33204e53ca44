#include "compiler/lower/body/fold_nest.h"

#include "compiler/lower/body/fold_body.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/place/storage.h"

namespace tessera {

Built build_fold(const Lowering &lowering, const Cursor &outside, const Scope &scope, Names &names) {
    const Stage &stage = outside.stage();
    Cursor at = outside;
    std::optional<Piece> scanned;
    const std::string scanned_along = scanned_dim(stage);
    if (!scanned_along.empty()) {  // the accumulators have no axis along the scanned dim
        if (!at.pieces.count(scanned_along)) at.pieces[scanned_along] = whole_at_loop(lowering, scope, stage, scanned_along, at.pieces);
        Piece &piece = at.pieces[scanned_along];
        scanned = std::exchange(piece, Piece{Expr(0), Expr(1), Expr(1), false, {}, 0});
    } else if (auto &reduce = std::get<Reduce>(stage.body); reduce.where.defined()) {
        at.fold.where = resolve(lowering, scope, reduce.where);
    }
    if (at.fold.begins_carries) return begin_carries(lowering, at, scope, names);
    const bool carries = scanned && goes_on(lowering, scope, stage);
    const Accumulators accumulators = accumulators_of(lowering, at, scope, names);
    at.fold.accumulators = std::make_shared<const std::vector<Buffer>>(accumulators.of_parts);
    at.fold.begun = true;
    Built built = carries ? take_carries(lowering, at, scope, names) : begin_parts(lowering, at, scope, names);
    Cursor loops = at;
    if (scanned) loops.pieces[scanned_along] = *scanned;
    built += build(lowering, loops, scope, names);
    if (carries) built += leave_carries(lowering, at, scope, names);
    if (!scanned) built += write_parts(lowering, at, scope, names);
    return in_allocs(accumulators.all, std::move(built));
}

}  // namespace tessera

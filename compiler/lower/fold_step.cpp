#include "compiler/lower/fold_step.h"

namespace tessera {

namespace {

struct StepAt {
    const Lowering &lowering;
    const Cursor &at;
    const Scope &scope;
    Names &names;

    TileBody operator()(const ElementStep &) const { return monoid_step(lowering, at, scope, names); }
    TileBody operator()(const VectorStep &) const { return monoid_step(lowering, at, scope, names); }
    TileBody operator()(const GroupStep &step) const {
        // Outside of a loop over groups there is one element.
        if (at.fold.group == 1) return monoid_step(lowering, at, scope, names);
        return group_step(*step.family, lowering, at, scope, names);
    }
};

}  // namespace

TileBody fold_step(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    return std::visit(StepAt{lowering, at, scope, names}, at.nest->step);
}

}  // namespace tessera

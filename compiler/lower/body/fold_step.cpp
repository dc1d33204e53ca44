#include "compiler/lower/body/fold_step.h"

#include "compiler/lower/body/fragment_body.h"
#include "support/containers/alternatives.h"

namespace tessera {

TileBody fold_step(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names) {
    auto by_monoid = [&] { return monoid_step(lowering, at, scope, names); };
    return std::visit(Overloaded{
                          [&](const ElementStep &) { return by_monoid(); },
                          [&](const VectorStep &) { return by_monoid(); },
                          [&](const GroupStep &step) {
                              // Outside of a loop over groups there is one element.
                              return at.fold.group == 1 ? by_monoid() : group_step(*step.family, lowering, at, scope, names);
                          },
                          [&](const FragmentStep &step) { return fragment_step(step, lowering, at, scope, names); },
                      },
                      at.nest->step);
}

}  // namespace tessera

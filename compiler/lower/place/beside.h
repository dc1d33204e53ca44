// What stages do that stand beside another in one of its loops.
#pragma once
#include "compiler/lower/context/build.h"
#include "compiler/lower/place/demand.h"
#include "compiler/lower/place/owned.h"

namespace tessera {

// Checks that whatever runs in the loops of the nest runs in the order of the program, as far as that matters. UserError schedule.place,
// schedule.order.
void check_order_beside(const Lowering &lowering, const StageNest &nest, const std::vector<Owned> &all);
// Checks what the stages at the loop of the cursor read of one another: nothing of other iterations. UserError schedule.place.
void check_reads_beside(const Lowering &lowering, const Cursor &at, const Scope &scope, const std::vector<Owned> &all,
                        const Regions &needed);
// The stage's nest at its loop.
Built build_beside(const Lowering &lowering, const Cursor &at, const Owned &owned, const Scope &scope, Names &names);

}  // namespace tessera

// Stages that are placed inside another stage's loops: they are computed there, in the region that the loop's body needs.
#pragma once
#include "compiler/lower/context/build.h"

namespace tessera {

// Whether some stage is placed in the loop at the cursor or in one further in.
bool has_producers(const Lowering &lowering, const Cursor &at);
// What is inside the loop at the cursor: the stages that are placed there, and then the rest of the nest. UserError schedule.place,
// schedule.order.
Built with_placed(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

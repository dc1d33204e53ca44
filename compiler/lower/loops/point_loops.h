#pragma once
#include "compiler/lower/context/build.h"

namespace tessera {

// The loop at the cursor point by point, or in groups where the nest's step takes several elements of its innermost loop. UserError
// schedule.loops where points of a fold stand outside its accumulators.
Built over_points(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);
// What is left of the loop's piece after its first `done` points, at most `most`, point by point.
Built points_left(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names, const Expr &done, int64_t most);

}  // namespace tessera

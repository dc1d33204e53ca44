#pragma once
#include "compiler/lower/context/build.h"

namespace tessera {

// The part of a fold's nest that its accumulators live in: they begin, the fold's loops step them, and what they hold is written.
Built build_fold(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

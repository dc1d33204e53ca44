// The one recursion of the lowering: a loop contains what comes next in its nest, and stages that are placed in it have nests of their own.
// What is around calls `build` for what is inside; next_loop.cpp has it, and knows every kind of loop and body.
#pragma once
#include "compiler/lower/context/built.h"
#include "compiler/lower/context/cursor.h"
#include "compiler/lower/context/names.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

// The nest from the cursor's position on.
Built build(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

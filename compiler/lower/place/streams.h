// Results that go to memory past the caches (Knobs::stream): what one iteration of a loop computes of an argument stays near, and is then
// written in streamed loops, a row at a time.
#pragma once
#include <functional>

#include "compiler/lower/context/build.h"

namespace tessera {

// What is inside the loop at the cursor, which `make_rest` makes. UserError schedule.stream where the stage's results cannot be streamed
// from there.
Built with_stream(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names,
                  const std::function<Built(const Scope &inside)> &make_rest);

}  // namespace tessera

// Scans that are placed in a loop along which they are read. They go on with that loop: what they have folded is carried from one
// iteration to the next, in buffers that live outside of it.
#pragma once
#include <functional>
#include <optional>

#include "compiler/lower/context/build.h"
#include "compiler/lower/place/storage.h"

namespace tessera {

// The loop at the cursor, which `make_loop` makes, inside the buffers that scans carry along it; they hold the identities when it begins.
// UserError schedule.place where a scan cannot go on with the loop.
Built with_carries(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names,
                   const std::function<Built(const Scope &inside)> &make_loop);

// UserError schedule.place where a scan that is placed in the loop at the cursor, in these pieces, would begin again in each iteration.
void check_goes_on(const Cursor &at, const Stage &stage, const Pieces &pieces);

// Where a step leaves the result of a point just where the next step takes it from, the carry is the result's storage.
std::optional<Stored> result_in_carry(const Lowering &lowering, const Scope &scope, const Stage &stage, const Tensor &result,
                                      const Pieces &pieces);

}  // namespace tessera

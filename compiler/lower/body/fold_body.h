// A fold at one register tile: its accumulators, what they begin with, and what is written of them.
#pragma once
#include "compiler/lower/body/point_values.h"

namespace tessera {

// Accumulators of all parts, and second ones of those parts that read one another's old values.
struct Accumulators {
    std::vector<Buffer> of_parts;  // as Fold has them
    std::vector<Buffer> all;       // those that there are
};
Accumulators accumulators_of(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

// Identities; where an earlier slice of the fold has been accumulated, its result.
TileBody begin_parts(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);
// acc = step(acc, inputs); of a scan, what it writes at each element too.
TileBody fold_body(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);
TileBody write_parts(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

// A scan that goes on with a loop (place/carries.h): identities for its first iteration; from there into the
// accumulators, and back.
TileBody begin_carries(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);
TileBody take_carries(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);
TileBody leave_carries(const Lowering &lowering, const Cursor &at, const Scope &scope, Names &names);

}  // namespace tessera

// Buffers for the results of stages.
#pragma once
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/mapping.h"

namespace tessera {

// An argument or a constant: all of the tensor, row-major. `padded`: with room past the ends of its operand.
Stored stored_argument(const Lowering &lowering, const Scope &scope, const Tensor &tensor, bool padded);
// The same in the workspace, for the result of a call.
Stored stored_result(const Lowering &lowering, const Scope &scope, const Tensor &tensor);
// A workspace buffer for all of a root stage's result.
Stored store_root(const Lowering &lowering, const Scope &scope, const Stage &stage, const Tensor &result);
// What a scan has folded of a part before an iteration of the loop that it goes on with: the tensor as which a scope knows it, which has
// one point along the scan.
Tensor carried(const Tensor &result);
// Whether the scope has that: the scan goes on with a loop around (carries.h).
bool goes_on(const Lowering &lowering, const Scope &scope, const Stage &scan);
// A buffer for the pieces of a placed stage's result, or of what it carries, whose name ends in the suffix. UserError schedule.place where
// their sizes have no bound, schedule.layout.
Stored store_placed(const Lowering &lowering, const Scope &scope, const Stage &stage, const Knobs &knobs, const Tensor &result,
                    const Pieces &pieces, const std::string &suffix, Names &names);

// Whether every outer tile of the dim is whole register tiles of so many points, so that all of them start at multiples of that.
bool starts_aligned(const Knobs &knobs, const std::string &dim, int64_t unit);
// Whether what a tile has past its limit must not be stored: a buffer of ours has room for whole tiles; an argument has not.
bool store_is_guarded(const Scope &scope, const Tensor &result);
// Whether it is a buffer of ours, or an argument with room, that holds the element at `index` wherever the loops are, limits aside.
bool has_room(const Lowering &lowering, const Scope &scope, const Stored &where, const std::vector<Expr> &index,
              const std::map<std::string, Expr> &at);

}  // namespace tessera

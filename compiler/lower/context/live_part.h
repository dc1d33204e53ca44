// The part of a folded dim that a stage's loops go over, where its condition limits it.
#pragma once
#include "compiler/lower/context/where_limits.h"

namespace tessera {

// Where the condition of a fold can hold along one of its dims, as far as that is worth a limit; `first` on the grid of the dim's tiles
// and groups, so that these are the same wherever the fold begins, and inside the dim; `end` may be outside.
Limits live_part(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim, const Pieces &outer);
// What data says of that: terms that are worth a name where the loops begin, after which live_part is in these names (Scope::limits).
std::vector<Expr> data_of_live_part(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim,
                                    const Pieces &outer);
// The points of the piece between the limits.
Piece between(const Piece &whole, const Limits &limits, const Bounds &facts);
// The whole of a dim that the stage folds, as far as its condition can hold, for a place that only asks: its beginning is free of data.
Piece whole_under_where(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim, const Pieces &outer);
// What every tile of the stage along a dim that it folds, and every group of it, is a multiple of.
int64_t grid_along(const Lowering &lowering, const Stage &stage, const std::string &dim);

}  // namespace tessera

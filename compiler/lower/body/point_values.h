// What an expression of a stage is at a point of its tile, and how a value is stored there.
#pragma once
#include "compiler/lower/body/tile_points.h"

namespace tessera {

// The expression at a point: its dims become loop indices, its loads go to where the tensors are. A load has a guard where it needs one.
// UserError schedule.place where a tensor is not there any more.
Expr evaluate(const Lowering &lowering, const Cursor &at, const Scope &inside, const Expr &e, const Point &point);

// The position in its buffer of the result's element at the point.
std::vector<Expr> result_index(const Lowering &lowering, const Stage &stage, const Scope &inside, const Tensor &result, const Point &point);

}  // namespace tessera

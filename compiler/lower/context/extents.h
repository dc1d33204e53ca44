// How far dims go at a place: extents of dims, and the whole of a dim as a piece.
#pragma once
#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/region.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

Expr extent_of(const Lowering &lowering, const Scope &scope, const std::string &dim);
// Whether it takes more than extents and loops to know it: elements of tensors, or parameters.
bool is_data(const Expr &e);
// What the extent is at most: where data tells it the limit that counted_dim has, undefined if there is none, and itself otherwise.
Expr extent_limit(const Lowering &lowering, const Scope &scope, const std::string &dim);
// The expression with the extents of fixed and derived dims written out, simplified.
Expr resolve(const Lowering &lowering, const Scope &scope, const Expr &e);
// The same, where the dims are that.
Expr resolve_at(const Lowering &lowering, const Scope &scope, const Expr &e, const std::map<std::string, Expr> &at);
// The position in the buffer of the element at `index`, where the dims are that.
std::vector<Expr> locate_at(const Lowering &lowering, const Scope &scope, const Stored &where, std::vector<Expr> index,
                            const std::map<std::string, Expr> &at);

// The whole of a dim. The size of a ragged dim needs the outer indices, whose pieces must be single points; else it is undefined. Its
// `most` is what holds for all of them.
Piece whole(const Lowering &lowering, const Scope &scope, const std::string &dim, const Pieces &outer);
// The same where the dim's loop begins. UserError schedule.ragged: its size varies with loops that do not go point by point outside it.
Piece whole_at_loop(const Lowering &lowering, const Scope &scope, const Stage &stage, const std::string &dim, const Pieces &outer);

}  // namespace tessera

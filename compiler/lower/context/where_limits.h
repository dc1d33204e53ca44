// Where along a dim a fold's condition can hold, and where it does.
#pragma once
#include <optional>
#include <vector>

#include "compiler/lower/context/lowering.h"
#include "compiler/lower/context/region.h"
#include "compiler/lower/context/scope.h"

namespace tessera {

// Indices first ..= end - 1. An undefined end is no limit on that side.
struct Limits {
    Expr first, end;
    bool with_gaps = false;  // of alternatives, between which it may be known to hold nowhere
};

// Limits on `dim` from the comparisons in `where`, a condition of the stage, which may use parameters, and elements that are stored already
// at indices that the pieces fix. Points of the other dims are those of the pieces; a dim of the stage that has none is taken whole.
// Undefined where nothing is known.
//
// Outside of these it fails at every point of the pieces.
std::optional<Limits> where_may_hold(const Lowering &lowering, const Scope &scope, const Expr &where, const std::string &dim,
                                     const Pieces &pieces);
// Between these it holds at every point of the pieces.
std::optional<Limits> where_holds(const Lowering &lowering, const Scope &scope, const Expr &where, const std::string &dim,
                                  const Pieces &pieces);

// The expression with the names that `scope` has for what data says of limits.
Expr in_names_of_limits(const Expr &e, const Scope &scope);
// What data says in the comparisons that limit `dim`: terms with elements of tensors, as they are computed here.
std::vector<Expr> data_in_limits(const Lowering &lowering, const Scope &scope, const Expr &where, const std::string &dim,
                                 const Pieces &pieces);

// A condition free of dims that is true where `where` holds at some point of the pieces, and perhaps elsewhere; undefined where nothing is
// known.
Expr may_hold(const Lowering &lowering, const Scope &scope, const Expr &where, const Pieces &pieces);

// The most by which one step along `dim` moves a side of `where`'s comparisons: more than 1 where the dim counts pieces of another.
int64_t step_in(const Expr &where, const std::string &dim);

}  // namespace tessera

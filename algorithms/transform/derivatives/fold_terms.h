// Terms of folds: by the form of a monoid, by what it says of its finished fold, and by what stands before and behind an element.
#pragma once
#include "algorithms/transform/derivatives/terms.h"

namespace tessera::differentiation {

LinearStage linearized_reduce(const LinearScope &scope, const Stage &stage, const Reduce &reduce);
LinearStage linearized_scan(const LinearScope &scope, const Stage &stage, const Scan &scan);

// The summand of a part whose step adds something that does not depend on what was folded: of sum its input, of dot the product.
// Undefined: it is no such part.
Expr summand(const Monoid &monoid, size_t part);

// Whether no reader of the fold's results sees the leader of some follows: whether readers stay as they are where the leader changes by
// little and all that follow it with it. Each reader is evaluated at 64 random points.
bool is_unseen(const LinearScope &scope, const Stage &stage, const Monoid &monoid, int leader);

}  // namespace tessera::differentiation

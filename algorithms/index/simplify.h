// Index arithmetic in canonical form. See prove.h for the whole of it.
#pragma once
#include "algorithms/index/bounds.h"

namespace tessera {

// An equal expression in canonical form: index sums and products expanded (linear.h); quotients and remainders by
// positive divisors, minima, maxima, comparisons, selects and guards decided where `bounds` decides them. Index
// arithmetic is taken not to overflow 64 bits. Floats, loads, casts and i32 or i64 arithmetic keep their form; the
// index expressions inside them are simplified. Idempotent.
Expr simplify(const Expr &e, const Bounds &bounds);

// The same as a sum; `e` is of type index. It stays where it is while the bounds exist and are not changed. Throws LinearOverflow.
const Linear &linear_form(const Expr &e, const Bounds &bounds);

}  // namespace tessera

// The one place for index arithmetic: canonical forms, ranges, proofs. Verifier, lowering and interpreter ask here, so
// a bound that one of them takes for granted is one that this file has proved.
//
//   Bounds       facts: ranges of variables, constraints of extents, conditions assumed        (bounds.h)
//   simplify     the canonical equal expression under the facts
//   prove        whether a condition follows from the facts
//   lower_bound, upper_bound   an expression without some variables that bounds another one
//
// All are sound and none is complete: `false`, an undefined Expr and an empty optional mean "not known". The method is
// elimination: to show e >= 0, replace each variable by the end of its range that makes e least (Fourier, Motzkin),
// minima and selects by cases, quotients by their rational bounds, and subtract positive multiples of assumed facts. What
// cancels goes first: variables whose range has a quotient that e has too, and two quotients by one divisor, or by it and a
// multiple of it.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "algorithms/index/bounds.h"

namespace tessera {

// An equal expression in canonical form: index sums and products expanded (linear.h); quotients and remainders by
// positive divisors, minima, maxima, comparisons, selects and guards decided where `bounds` decides them. Index
// arithmetic is taken not to overflow 64 bits. Floats, loads, casts and i32 or i64 arithmetic keep their form; the
// index expressions inside them are simplified. Idempotent.
Expr simplify(const Expr &e, const Bounds &bounds);

// The same as a sum; `e` is of type index. It stays where it is while the bounds exist and are not changed. Throws LinearOverflow.
const Linear &linear_form(const Expr &e, const Bounds &bounds);

// The least and greatest value, when both are known constants.
std::optional<std::pair<int64_t, int64_t>> constant_range(const Expr &e, const Bounds &bounds);

// Whether the load reads the element at these indices, whatever its guard.
bool reads_element(const Expr &load, const std::vector<Expr> &index);

// Whether a bool expression holds wherever the facts do. Understands lt, le, eq, ne, and, or, not, select.
bool prove(const Expr &condition, const Bounds &bounds);
bool prove_nonnegative(const Linear &form, const Bounds &bounds);

// An expression free of `variables` that is <= e (>= e) for all their values; undefined when none is known.
Expr lower_bound(const Expr &e, const Bounds &bounds, const std::set<std::string> &variables);
Expr upper_bound(const Expr &e, const Bounds &bounds, const std::set<std::string> &variables);

}  // namespace tessera

// The one place for index arithmetic: canonical forms, ranges, proofs. Verifier, lowering and interpreter ask here, so
// a bound that one of them takes for granted is one that this file has proved.
//
//   Bounds       facts: ranges of variables, constraints of extents, conditions assumed        (bounds.h)
//   simplify     the canonical equal expression under the facts                                (simplify.h)
//   prove        whether a condition follows from the facts
//   lower_bound, upper_bound   an expression without some variables that bounds another one
//
// All are sound and none is complete: `false`, an undefined Expr and an empty optional mean "not known". The method is
// elimination: to show e >= 0, replace each variable by the end of its range that makes e least (Fourier, Motzkin),
// minima and selects by cases, quotients by their rational bounds, and subtract positive multiples of assumed facts. What
// cancels goes first: variables whose range has a quotient that e has too, and two quotients by one divisor.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "algorithms/index/bounds.h"
#include "algorithms/index/simplify.h"

namespace tessera {

// The least and greatest value, when both are known constants.
std::optional<std::pair<int64_t, int64_t>> constant_range(const Expr &e, const Bounds &bounds);

// Whether a bool expression holds wherever the facts do. Understands lt, le, eq, ne, and, or, not, select.
bool prove(const Expr &condition, const Bounds &bounds);
bool prove_nonnegative(const Linear &form, const Bounds &bounds);

// An expression free of `variables` that is <= e (>= e) for all their values; undefined when none is known.
Expr lower_bound(const Expr &e, const Bounds &bounds, const std::set<std::string> &variables);
Expr upper_bound(const Expr &e, const Bounds &bounds, const std::set<std::string> &variables);

}  // namespace tessera

// Whether monoids keep the laws by which schedules split folds: a fold in pieces combines their results, a fold as declared steps
// through its elements, and both are meant to be one thing.
//
//   identity       combine(identity, a) == a == combine(a, identity)
//   associativity  combine(combine(a, b), c) == combine(a, combine(b, c))
//   step           step(a, x) == combine(a, lift(x))
//   commutativity  combine(a, b) == combine(b, a), where the monoid is declared commutative
//   batch          the parts that the batch form gives of a few elements, or of none, are those of their fold by step
//
// a, b and c are the identity, lifted elements, and folds of a few, or of one special number: NaN, infinities, -0 and the least subnormal
// one. Elements are the same in every run: small numbers of both signs with fractions, among them 0 and equal ones. A monoid that only
// compares and chooses (op.h: min, max, comparisons, select and logic) also folds the ends of its integers, and its sides must be equal.
// Otherwise floats may differ by rounding: half of the mantissa's bits must agree, seen from the largest number around, or what is off is
// less than the least normal number; and an infinity may be NaN in another order, as inf - inf is. NaN on both sides is agreement, and so
// are zeros of either sign. A NaN that one order keeps and another loses is none.
#pragma once
#include <optional>
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// The first law that is broken, with the values that break it, as a sentence; nothing where all hold. `monoid` is well formed
// (verify.h). Deterministic, some milliseconds.
std::optional<std::string> broken_law(const Monoid &monoid);

// Whether combine(identity, a) and combine(a, identity) are `a` bit for bit, where `a` is the identity or a fold of one or two of the
// elements that broken_law tries; NaN is NaN. Then a fold of pieces may leave out those without elements. That of Welford is not: inf - inf
// of an infinite mean is NaN.
bool has_exact_identity(const Monoid &monoid);

// Checks each monoid of the algorithm and of its callees once. UserError algorithm.monoid-law.
void check_monoid_laws(const Algorithm &algorithm);

}  // namespace tessera

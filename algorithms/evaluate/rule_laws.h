// Whether what an author says of a derivative is one: the rule of an algorithm beside differences of it in f64.
//
//   forward    gives what the algorithm gives
//   jvp        J v, beside (f(x + h v) - f(x - h v)) / 2h
//   backward   <J'w, v>, beside <w, J v> by the same differences
//
// At a few points of small extents: floats of few bits in -1.5 .. 1.5, or in the range that the algorithm states of an input, so that steps
// of them are exact. A point counts where differences of two step sizes agree, so that no kink lies between, and where all is finite.
// Floats of less than 32 bits have no room for steps: rules are compared where the algorithm is made with f32 or f64.
// A rule that differs on purpose is only held to give what the algorithm gives.
#pragma once
#include <optional>
#include <string>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// The first law that is broken, as a sentence with the values; nothing where all hold. The algorithm has a rule, which is well formed
// (verify_rule.h). Deterministic.
std::optional<std::string> broken_rule_law(const Algorithm &algorithm);

// Checks the rules of the algorithm and of its callees. UserErrors algorithm.rule, algorithm.rule-law.
void check_rule_laws(const Algorithm &algorithm);

}  // namespace tessera

// Minima and maxima that one comparison decides: what x86 has as one instruction, min and max, which gives the second operand where the two
// are equal or one is NaN. Those of the language (op.h) keep every NaN, and take more unless an operand is never one.
#pragma once
#include <optional>

#include "algorithms/expr/expr.h"

namespace tessera {

// first < second ? first : second where `least`, otherwise first > second ? first : second.
struct OneComparison {
    bool least;
    Expr first, second;
};

// Takes a minimum, a maximum, or a choice between the two sides of its comparison, of floats.
std::optional<OneComparison> as_one_comparison(const Expr &e);

}  // namespace tessera

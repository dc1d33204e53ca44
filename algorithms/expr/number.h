// A number that somebody wrote, as a constant of a type: 0.5, -1, 1e39. A type that does not have it would keep something else without
// a word, such as 0 for 0.5.
#pragma once
#include <string>

#include "algorithms/expr/expr.h"

namespace tessera {

// Whether the type has the number: an integer exactly; a float rounded to nearest, where no finite number becomes an infinity or NaN.
bool holds(DType type, double value);
// The number as a constant of the type. UserError expr.number where it does not hold it; `subject` is what the number meets.
Expr number(const std::string &subject, DType type, double value);

}  // namespace tessera

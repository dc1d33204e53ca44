// Element-wise algorithms over arrays of any shape, as NumPy's ufuncs are.
#pragma once
#include <set>

#include "algorithms/ir/algorithm.h"

namespace tessera {

// Whether each element of a result takes one element of each input, as NumPy's broadcasting would pair them: all stages are maps, results
// have all dims, and a stage reads a tensor at its own last dims, in their order. Tables may be read anywhere that no position decides.
// UserErrors elementwise.stage, elementwise.reading, elementwise.position, elementwise.result, elementwise.type, elementwise.state.
void check_elementwise(const Algorithm &algorithm);

// An element-wise algorithm over rows and columns, whatever dims it was declared over: all inputs and results are (rows, columns), but the
// inputs in `repeated` are (rows, 1): one element is that of the whole row. Extents that were fixed, and constraints of dims, are gone.
Algorithm elementwise_over_rows(const Algorithm &algorithm, const std::set<std::string> &repeated);

}  // namespace tessera

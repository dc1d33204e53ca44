// Extents that somebody gives for the dims of an algorithm, in --shape, in --extents or in a file: the one check of them.
#pragma once
#include "algorithms/ir/algorithm.h"
#include "algorithms/ir/extents.h"

namespace tessera {

// The given extents, and those that follow from them for symbolic dims that are declared equal to a given or to a fixed one. A dim that
// is fixed may be given as it is. UserError shape.unknown-dim, shape.constraint.
Extents given_extents(const Algorithm &algorithm, const Extents &given);

// UserError shape.constraint in the words that a kernel has for it (extent_words.h): "matmul: dim K, dimension 1 of 'x': extent must be a
// multiple of 16, not 17. <more>". `rule` is up to the number that was expected.
[[noreturn]] void refuse_extent(const Algorithm &algorithm, const Dim &dim, const std::string &rule, int64_t got,
                                const std::string &more = "");

// The extent that the constraints of the symbolic dim, and of all dims that are equal to it, allow: the next from `wished` on; the most
// where that is less.
int64_t allowed_extent(const Algorithm &algorithm, const Dim &dim, int64_t wished);
// The given extents of symbolic dims, and for each other one that follows from no other dim the allowed one next to `usual`.
Extents with_usual_extents(const Algorithm &algorithm, Extents given, int64_t usual);

// The dim at the end of `equals`: all that are declared equal have one.
const Dim &root_of(const Algorithm &algorithm, const Dim &dim);

// The symbolic dim with the constraints of all dims that are declared equal to it, or to which it is.
Dim with_constraints_of_equals(const Algorithm &algorithm, const Dim &dim);

}  // namespace tessera

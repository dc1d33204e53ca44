// Names for what an expression uses more than once. Halide's passes walk trees, and so does LLVM's front end: a function of a
// function, each of which uses its argument eight times, would be walked 64 times over.
#pragma once
#include <Halide.h>

namespace tessera::emit {

// The same value as lets, innermost first, around what is left. Positions and conditions are named only where they are large:
// Halide sees which of the small ones are contiguous.
Halide::Expr name_shared(const Halide::Expr &e);

}  // namespace tessera::emit

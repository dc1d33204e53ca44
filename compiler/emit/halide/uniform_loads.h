// Loads of one element for all lanes, under conditions that lanes differ in.
#pragma once
#include "compiler/emit/halide/values.h"

namespace tessera::emit {

// Halide's vectorizer takes no load whose index is the same for all lanes and whose predicate is not, and its simplifier makes such loads:
// of min(127, 128 + lane) it leaves 127. They happen where the predicate of some lane holds; who uses them chooses by lane.
Halide::Internal::Stmt with_uniform_loads(const Halide::Internal::Stmt &s);

}  // namespace tessera::emit

// Stores that stand one after the other and share what they compute.
#pragma once
#include "compiler/emit/halide/values.h"

namespace tessera::emit {

// The statement for the stores from body[first] on, or the vector loops of the same lanes around one store each, none of which reads
// what an earlier one stored. What several of them compute is computed once: LLVM would have to prove that the
// stores between do not change what is loaded, and does not try for long. Where each of `n` loops fills every n-th of the
// elements that all of them fill, their values go through an interleaving shuffle into one store. `count` is 0, and the statement
// undefined, where fewer than two stores have anything in common.
struct StoreRun {
    size_t count = 0;
    Halide::Internal::Stmt statement;
};
StoreRun store_run(const TileBody &body, size_t first, const Addresses &addresses, Values &values);

}  // namespace tessera::emit

// Consecutive stores that share what they compute.
#pragma once
#include "compiler/emit/halide/values.h"

namespace tessera::emit {

// The statement for the `count` stores from body[first] on (or vector loops of equal lanes around one store each), none of which
// reads what an earlier one stored. What several of them compute is computed once; LLVM would have to prove that the stores in
// between do not change what is loaded, and soon gives up. If each of n loops fills every n-th element of one range, their values
// go through an interleaving shuffle into one store. If fewer than two stores have anything in common, `count` is 0 and the
// statement undefined.
struct StoreRun {
    size_t count = 0;
    Halide::Internal::Stmt statement;
};
StoreRun store_run(const TileBody &body, size_t first, const Addresses &addresses, Values &values);

}  // namespace tessera::emit

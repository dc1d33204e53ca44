// Which of a program's small buffers become variables of C: named storage, which compilers keep in registers.
#pragma once
#include <map>
#include <optional>

#include "compiler/tile/tile_program.h"

namespace tessera::emit_c {

// Whether the body of a vector loop is written on vectors: a power of two of lanes, around stores and unrolled loops. Any
// other vector loop is written lane by lane, which means the same.
bool in_vectors(const Loop &loop);

// The constant count of an unrolled loop, which is then written out; of vector loops lane by lane and of others, none.
std::optional<int64_t> written_out(const Loop &loop);

// Lanes for each variable of C, 0 for single elements; none where the buffer must be an array: it is indexed by something
// that is not a constant, not by the same lanes everywhere, or in another task. `known`: the unrolled variables around it.
std::optional<int> named_lanes(const Buffer &buffer, const TileBody &body, const std::map<std::string, Expr> &known);

}  // namespace tessera::emit_c

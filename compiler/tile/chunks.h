// Copies to shared memory of 16 bytes by each thread, which CUDA makes asynchronously (cp.async).
#pragma once
#include <optional>

#include "algorithms/index/prove.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

constexpr int64_t chunk_bytes = 16;

// One chunk, over what is in scope around the loop over its elements.
struct Chunk {
    std::vector<Expr> to, from;  // of its first element
    std::string buffer;          // that it comes from
    Expr bytes;                  // that are there; zeros follow
};

// Nothing where the loop is over anything but one asynchronous Copy of 16 bytes that lie side by side on both sides, zeros past their end,
// and begin at a multiple of 16 bytes in shared memory and at one in their row of an argument or of the workspace. Where these and their
// rows begin is known at run time only.
std::optional<Chunk> chunk_of(const Loop &loop, const Buffer &to, const Buffer &from, const Bounds &facts);

}  // namespace tessera

#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace tessera {

// Kernels count in 32 bits, and the last tile of a dim may end beyond the largest extent that a dim may have.
constexpr int64_t max_tile = 65536;
constexpr int64_t max_extent = INT32_MAX - max_tile;  // TESS_MAX_ELEMENTS of runtime/abi/tessera.h

using Extents = std::map<std::string, int64_t>;  // by dim

}  // namespace tessera

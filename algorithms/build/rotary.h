// Rotary positions (Su et al. 2021): pairs of elements turned by the angle of their position.
#pragma once
#include "algorithms/build/builder.h"

namespace tessera {

// Turns pairs: the first 2 C elements along `along` are C pairs (a, b), which become (a cos - b sin, b cos + a sin); the others stay.
// `cosine` and `sine` have the dim `pairs` of C elements, and dims of x. Pairs are halves apart (i, C + i), or with `interleaved`
// neighbours (2 i, 2 i + 1). UserError rotary.dims where x lacks `along`, or the angles `pairs`.
Tile rotary(const Tile &x, const Dim &along, const Tile &cosine, const Tile &sine, const Dim &pairs, bool interleaved = false,
            Span caller = std::source_location::current());

}  // namespace tessera

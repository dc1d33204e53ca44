// Whether a place in a tile program is never reached: what verify_tiles.h asks where a proof fails.
#pragma once
#include "compiler/check/verify_races.h"

namespace tessera {

// Whether a loop around runs no iteration, or a condition around never holds, under the facts of dims and of what is around them. Facts
// of such a place contradict each other, so little can be proved there, and nothing needs to be. False means "not known".
bool is_never_reached(const EnclosingScope &where, const Bounds &dims);

}  // namespace tessera

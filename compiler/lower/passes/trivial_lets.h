#pragma once
#include "compiler/tile/tile_program.h"

namespace tessera {

// The body without its Lets of constants: the constant stands wherever the variable did.
TileBody without_trivial_lets(const TileBody &body);

}  // namespace tessera

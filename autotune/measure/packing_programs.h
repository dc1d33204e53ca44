// What packs the operands that a tile program takes packed ahead of time.
#pragma once
#include <map>

#include "compiler/tile/tile_program.h"
#include "schedules/target/target.h"

namespace tessera {

// One program for each such argument, by its position; its two arguments are the operand and what it is packed into. `algorithm` is what
// the program was lowered from.
std::map<size_t, TileProgram> packings_of(const Algorithm &algorithm, const TileProgram &program, const Target &target);

}  // namespace tessera

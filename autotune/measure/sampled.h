// A tile program that computes some blocks of its outputs and leaves the others alone, so that an interpreter can say within
// milliseconds what a large kernel must give there.
#pragma once
#include "bench/measure/inputs.h"
#include "compiler/tile/tile_program.h"

namespace tessera {

// Loops whose iterations compute outputs that nothing else of the program reads, by way of buffers of their own, run for one or
// two of their iterations, as `seed` chooses. Nothing is left out of any other loop. `extents` of all dims that no data decides.
TileProgram sampled(const TileProgram &program, const Extents &extents, uint64_t seed);

// About how many operations an interpreter does on the way through the program.
double steps_of(const TileProgram &program, const Extents &extents);

}  // namespace tessera

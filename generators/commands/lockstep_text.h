#pragma once
#include <string>

#include "algorithms/ir/extents.h"
#include "generators/kernel/prepare.h"

namespace tessera {

// What the kernels for a GPU do in lock step (compiler/interpret/lockstep.h) at the given extents, with random inputs; other dynamic dims
// have 64 points, or as many as they may.
std::string lockstep_text(const PreparedKernel &prepared, const Extents &extents);

}  // namespace tessera

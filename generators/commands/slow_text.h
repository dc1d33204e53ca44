#pragma once
#include <string>

#include "algorithms/ir/extents.h"
#include "generators/kernel/prepare.h"

namespace tessera {

// Where a kernel's time goes at the given extents, by the draft of the cost model, and what makes the slow parts slow
// (costmodel/features/limiters.h); other dynamic dims have 256 points, or as many as they may. UserError command.arguments for a GPU.
std::string slow_text(const PreparedKernel &prepared, const Extents &extents, int threads);

}  // namespace tessera

#pragma once
#include <string>

#include "algorithms/ir/extents.h"
#include "generators/kernel/prepare.h"

namespace tessera {

// The workspace of each variant: every buffer with where it begins, its bytes and the parts between which it lives; every part with what it
// makes and what is live; the peak. The numbers are at the given extents; other dynamic dims count as typical ones.
std::string memory_text(const PreparedKernel &prepared, const Extents &extents);

}  // namespace tessera

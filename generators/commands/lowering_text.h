#pragma once
#include <string>

#include "generators/kernel/prepare.h"

namespace tessera {

// How a schedule becomes tile programs, step by step: the algorithm, and what each rewrite changes in it; the body of the tile program, and
// what each pass changes in that. Needs no more than prepare_schedule gives. UserErrors of lowering.
std::string lowering_text(const ScheduledKernel &scheduled);

}  // namespace tessera

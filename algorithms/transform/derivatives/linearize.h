// One stage, whatever its body, as what it is linear in.
#pragma once
#include "algorithms/transform/derivatives/terms.h"

namespace tessera::differentiation {

// UserErrors derivative.bits, derivative.fold (a fold over several dims without a derivative), derivative.parts (parts of a scan that
// change each other), derivative.write.
LinearStage linearized(const LinearScope &scope, const Stage &stage);

}  // namespace tessera::differentiation

// How the threads of a GPU's block share the work of a stage: one team computes one tile of `block` points at a time, and each thread a
// part of `micro` points of it.
#pragma once
#include "compiler/lower/context/mapping.h"

namespace tessera {

// The stated knobs with every tile written out that the threads of a block compute at one time: of a stage at root those that the
// schedule states; of a placed one, unless it states any, as many points as there are threads.
Assigned assign_threads(const Lowering &lowering, const Target &target, const Stage &stage, Knobs stated, const Pieces &pieces,
                        std::optional<int64_t> threads);

}  // namespace tessera

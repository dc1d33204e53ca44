// What is around the nests of a program: its arguments, constants and dims.
#pragma once
#include "compiler/lower/kept_calls.h"
#include "compiler/rewrite/prepack.h"
#include "schedules/target/target.h"

namespace tessera {

// The program without its body. `declared` is the algorithm before the rewrites.
TileProgram program_frame(const Algorithm &declared, const Algorithm &rewritten, const KeptCalls &kept,
                          const std::vector<PackedInput> &packed, const Target &target);
// Where its arguments and constants are.
Scope scope_of(const Lowering &lowering, const TileProgram &frame);

}  // namespace tessera

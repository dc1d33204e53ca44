// What is emitted together: a kernel with its variants, each under its condition, for each target.
#pragma once
#include <string>
#include <vector>

#include "compiler/tile/tile_program.h"
#include "schedules/knobs/schedule.h"
#include "schedules/target/target.h"

namespace tessera {

// A program and the condition under which the library runs it: all of `when` hold. The last variant of a kernel has
// none, so one always applies.
struct KernelVariant {
    std::vector<Condition> when;
    TileProgram program;
};

// One public function. All variants have the same arguments, packed alike.
struct Kernel {
    std::string name;  // a C identifier
    std::vector<KernelVariant> variants;
    // The last variant's program, which is for all extents: it says what the arguments are and what is checked.
    const TileProgram &general() const { return variants.back().program; }
};

// The same kernels, each lowered for one target under its own schedule.
struct TargetKernels {
    Target target;
    std::vector<Kernel> kernels;
};

}  // namespace tessera

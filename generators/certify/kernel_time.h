// How long a compiled kernel runs on this machine, and how many instructions it takes.
#pragma once
#include <optional>

#include "bench/measure/stated_inputs.h"
#include "generators/kernel/prepare.h"
#include "support/processes/limited_process.h"

namespace tessera {

struct Timing {
    double seconds = 1;   // how long to measure
    int32_t threads = 1;  // that the kernel may use
    bool cold = false;    // calls find nothing of their data in the caches
    StatedInputs inputs = {};  // what is stated of the data
    Limits compile, run{300};
};

struct KernelTime {
    size_t samples = 0;
    double median_s = 0, min_s = 0;    // of one call; on one thread, of that thread's processor, whatever else runs beside it
    std::optional<double> operations;  // nothing where a dim's extent depends on data
    double bytes = 0;                  // of the arguments
};

// Compiles the kernel and times it in a process of its own, with random inputs where none are stated. `symbolic` are the extents of the
// dims that it leaves dynamic. UserError bench.size, before anything is compiled: what cannot be done within the limits; bench.limit;
// bench.memory (no memory to evict caches with); those of all_extents and of library_to_load.
KernelTime time_of(const PreparedKernel &prepared, const Extents &symbolic, const Timing &timing);

// Compiles the kernel and counts the instructions of one call on one thread that lie in its own code (bench/measure/instruction_count.h);
// what its arguments hold is random and always the same. UserError bench.instructions, and those of time_of.
uint64_t instructions_of(const PreparedKernel &prepared, const Extents &symbolic, const Timing &timing);

}  // namespace tessera

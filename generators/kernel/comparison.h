// Whether a compiled kernel computes what its tile program says, bit for bit, and what its algorithm says, within bounds.
#pragma once
#include <string>
#include <vector>

#include "bench/measure/inputs.h"
#include "generators/kernel/loaded_kernel.h"

namespace tessera {

// One shape's result.
struct Comparison {
    Extents extents;
    std::string difference;     // "" when all is equal; otherwise where, expected and got
    double error = 0;           // largest distance from the exact result, relative to its largest element
    double declared_error = 0;  // the same of the declared order of operations in the policy's types
};

// Runs the kernel once for each thread count, with poisoned outputs between guard zones, and compares:
//   with the tile program's interpreter   equal bits, any NaN equal to any other; the same for every thread count
//   with the algorithm in double          at most 8 times as far off as the algorithm in its own types, plus 4 units in the
//                                         last place of the largest element; integers equal; NaN and Inf alike
Comparison compare(const PreparedKernel &prepared, const LoadedKernels &loaded, const Extents &extents, uint64_t seed,
                   const std::vector<int32_t> &threads);

// "M=7 N=33"
std::string to_string(const Extents &extents);

}  // namespace tessera

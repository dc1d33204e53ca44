// Whether a compiled kernel computes what its tile program says, bit for bit, and what its algorithm says, within bounds.
#pragma once
#include <string>
#include <vector>

#include "algorithms/evaluate/reference.h"
#include "bench/measure/inputs.h"
#include "generators/output/loaded_kernel.h"

namespace tessera {

// One shape's result.
struct Comparison {
    Extents extents;
    std::string difference;     // "" when all is equal; otherwise where, expected and got
    double error = 0;           // largest distance from the exact result, relative to its largest element
    double declared_error = 0;  // the same of the declared order of operations in the policy's types
    std::string output;         // the one of that error
    double largest = 0;         // its largest element
    bool is_near_zero = false;  // that is so small that the rounding of what it is made of shows in the error
    // Elements of all outputs that are NaN in the algorithm's results too, and so compare as equal whatever they should be.
    int64_t elements = 0, nans = 0;
    std::string first_nan;  // "y[0, 3]"
};

// Runs the kernel once for each thread count, with poisoned outputs between guard zones, and compares:
//   with the tile program's interpreter   equal bits, any NaN equal to any other; the same for every thread count
//   with the algorithm in double          at most 8 times as far off as the algorithm in its own types, plus 4 units in the
//                                         last place of the largest element; integers equal; NaN and Inf alike
Comparison compare(const PreparedKernel &prepared, const LoadedKernels &loaded, const Extents &extents, uint64_t seed,
                   const std::vector<int32_t> &threads, const StatedInputs &stated = {});

// The same of the tile program alone, which nothing compiles or runs: how its results differ from those of the algorithm at some points,
// for extents of any size. "" where they agree within the bounds above, and where no interpreter can say within seconds.
std::string difference_from_algorithm(const PreparedKernel &prepared, const Extents &extents, const StatedInputs &stated = {});

// What the program's arguments hold before a run: inputs and states, and outputs that hold poison.
std::map<std::string, Array> arguments_before(const TileProgram &program, const Inputs &inputs, const Extents &extents);
// What its algorithm gives for inputs as the program has them: each result as a caller sees it, so that two of four bits in a byte are two.
std::map<std::string, Array> reference_results(const PreparedKernel &prepared, const Inputs &inputs, const EvaluationOptions &options);
// The values of an argument as a caller sees them.
Array as_declared(const Argument &argument, const Array &stored, const Extents &extents);
// The inputs and what the kernel takes packed of them.
Inputs with_packed(const PreparedKernel &prepared, Inputs inputs, const Extents &extents);

// "M=7 N=33"
std::string to_string(const Extents &extents);

}  // namespace tessera

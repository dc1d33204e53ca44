// What a Google Benchmark program of a kernel has to know (bench/google/kernel_benchmark.h), as C++.
#pragma once
#include <string>
#include <vector>

#include "generators/kernel/prepare.h"

namespace tessera {

// A benchmark for each of `shapes`, extents of the dims that the kernel leaves dynamic, with the inputs and the work of `bench`. The bound
// is that of the best target that runs here, of the last where none does. UserErrors of all_extents; command.target for a GPU.
std::string benchmark_source(const std::vector<PreparedKernel> &targets, const std::vector<Extents> &shapes);

}  // namespace tessera

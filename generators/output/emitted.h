// Prepared kernels as emitters take them, and as text.
#pragma once
#include <string>
#include <vector>

#include "compiler/tile/kernel.h"
#include "generators/kernel/prepared_library.h"

namespace tessera {

// The kernels of all targets, as emitters take them.
std::vector<TargetKernels> kernels_of(const PreparedLibrary &library);
// What a file that people read says of them: hashes, fixed extents, schedules; of the first target.
std::vector<std::string> about(const PreparedLibrary &library);
// The tile programs of all kernels, targets and variants, as text.
std::string tiles_text(const PreparedLibrary &library);
// "up: " where a line on a kernel stands among those on others, otherwise nothing.
std::string line_start(const PreparedLibrary &library, const PreparedKernel &kernel);

}  // namespace tessera

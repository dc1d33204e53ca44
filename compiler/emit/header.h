// The plain C header of a generated library.
#pragma once
#include "compiler/tile/kernel.h"

namespace tessera {

// C99 and C++20. For each kernel: `int name(arguments…, const TessContext *)`, `int name_workspace(…, uint64_t *bytes)` and
// the argument names that tess_status_message takes; for one that packs an operand also `int name_size(…, uint64_t *bytes)`,
// without the argument that it writes. `stem` names the include guard and the file beside the header; `about`: further lines for
// the comment at its top.
enum class Beside { library, c_file };
std::string header_of(const std::string &stem, const std::vector<TargetKernels> &targets, Beside beside = Beside::library,
                      const std::vector<std::string> &about = {});

// The arguments as the public functions declare them, each followed by ", "; the second form, for a packing function's size query,
// leaves out what it writes.
std::string c_arguments(const TileProgram &program);
std::string c_size_arguments(const TileProgram &program);

}  // namespace tessera

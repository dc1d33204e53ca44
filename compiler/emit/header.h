// The plain C header of a generated library.
#pragma once
#include "compiler/tile/kernel.h"

namespace tessera {

// C99 and C++20. For each kernel: a struct of its parameters; `name(tensors…, parameters, context)` where it has at most 16 tensors, and
// `name_table` with the tensors in a table; `name_workspace(…, uint64_t *bytes)`; `name_describe(TessKernel *)`; and the argument names
// that tess_status_message takes; for one that packs an operand also `name_size(…, uint64_t *bytes)`, without the argument that it
// writes. `stem` names the include guard and the file beside the header; `about`: further lines for the comment at its top.
enum class Beside { library, c_file };
std::string header_of(const std::string &stem, const std::vector<TargetKernels> &targets, Beside beside = Beside::library,
                      const std::vector<std::string> &about = {});

// The tensors as the public functions declare them, each followed by ", "; for a packing function's size query without what it writes.
std::string c_tensors(const TileProgram &program, bool written = true);
// The struct of parameters, in the same way; "" where there are none.
std::string c_parameters(const std::string &kernel, const TileProgram &program);

}  // namespace tessera

// The plain C header of a generated library.
#pragma once
#include "compiler/emit_library.h"

namespace tessera {

// C99 and C++20. For each kernel: `int name(arguments…, const TessContext *)`, `int name_workspace(…, uint64_t *bytes)` and
// the argument names that tess_status_message takes. `stem` names the include guard.
std::string header_of(const std::string &stem, const std::vector<TargetKernels> &targets);

// UserError emit.name unless `name` can be the name of a C function.
void check_c_name(const std::string &name);

}  // namespace tessera

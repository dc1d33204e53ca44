// What is made of prepared kernels: a library, C, the text of their tile programs.
#pragma once
#include <string>
#include <vector>

#include "compiler/emit/emit_library.h"
#include "generators/kernel/prepared_library.h"
#include "support/processes/limited_process.h"

namespace tessera {

// The kernels of all targets, as emitters take them.
std::vector<TargetKernels> kernels_of(const PreparedLibrary &library);
// Emits the library (and its assembly) in a process that can be killed.
void emit_limited(const PreparedLibrary &library, const EmitOptions &options, const Limits &limits);
// A library for one target as one file of C.
std::string c_text(const PreparedLibrary &library);
// The tile programs of all kernels, targets and variants, as text.
std::string tiles_text(const PreparedLibrary &library);
// "up: " where a line on a kernel stands among those on others, otherwise nothing.
std::string line_start(const PreparedLibrary &library, const PreparedKernel &kernel);

}  // namespace tessera

// What is made of prepared kernels: a library, C, the text of their tile programs.
#pragma once
#include <string>
#include <vector>

#include "compiler/emit/emit_library.h"
#include "generators/kernel/prepare.h"
#include "support/processes/limited_process.h"

namespace tessera {

// The kernels of all targets, as emitters take them.
std::vector<TargetKernels> kernels_of(const std::vector<PreparedKernel> &prepared);
// Emits the kernel's library (and its assembly) in a process that can be killed.
void emit_limited(const std::vector<PreparedKernel> &prepared, const EmitOptions &options, const Limits &limits);
// The kernel as one file of C.
std::string c_text(const PreparedKernel &prepared);
// The tile programs of all targets and variants, as text.
std::string tiles_text(const std::vector<PreparedKernel> &prepared);

}  // namespace tessera

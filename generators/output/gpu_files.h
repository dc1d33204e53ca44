// The files of a library for a GPU: the host's C file and what it hands to the device.
#pragma once
#include <map>
#include <string>

#include "generators/kernel/prepared_library.h"
#include "support/processes/limited_process.h"

namespace tessera {

// By name: <name>.c, and <name>.cl for OpenCL, <name>.cu and the <name>.ptx that nvcc makes of it for CUDA. UserError
// command.nvcc when nvcc is missing or refuses, compile.limit when it takes too long.
std::map<std::string, std::string> gpu_files(const PreparedLibrary &library, const Limits &limits);

}  // namespace tessera

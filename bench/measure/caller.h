// Calls a kernel of any signature through a C function of one fixed signature, which is compiled beside the kernel.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "compiler/tile/kernel.h"
#include "support/processes/limited_process.h"

namespace tessera {

// C99 that defines
//   int <function>(const void *const *tensors, const void *parameters, const void *context, uint64_t *bytes, int32_t query)
// which calls the kernel or, where `query` is 1, its workspace query. A tensor is a TessTensor, a parameter 8 bytes that begin with its
// value.
std::string caller_source(const std::string &function, const Kernel &kernel);

// The words as caller_source's function takes them.
std::vector<int64_t> parameter_words(const TileProgram &program, const std::map<std::string, Scalar> &parameters);

// Runs a C compiler, whose messages go to `log`. `arguments` begins with its name. Whether it came to its end: it does not once `stopped`
// is true. UserError command.cc when it is missing or fails, compile.limit when it reaches a limit.
bool run_cc(const std::vector<std::string> &arguments, const std::filesystem::path &log, const Limits &limits,
            const std::function<bool()> &stopped = {});

}  // namespace tessera

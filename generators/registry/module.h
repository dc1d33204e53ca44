// The kernels of one library. A module is told by words of the command line, or by a file (tessera-module.schema.json):
//
//   { "format": "tessera-module", "version": 1, "name": "encoder",
//     "kernels": [{"name": "up", "algorithm": "linear_gelu", "numerics": "f32", "options": {}, "shape": {"N": 1536, "K": 384},
//                  "derive_for": {"M": 512}, "schedule": "schedules/up.json", "schedules": {"avx2": "none"}},
//                 {"algorithm": "layernorm"}] }
//
// All of a kernel but its algorithm may be left out: it has its algorithm's name, f32, no extents, and for every target the best match
// (best_match.h). Algorithms and schedules that end in .json are files, relative to the folder of the module's file.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "generators/registry/options.h"

namespace tessera {

struct ModuleKernel {
    std::string name;                    // in C; "" for the algorithm's
    KernelOptions options;               // with the command's target, folders and quiet
    std::vector<std::string> schedules;  // "avx2=<schedule>", where several targets differ
};

struct Module {
    std::string name;  // of the library; "" for that of its only kernel
    std::vector<ModuleKernel> kernels;
};

// `common` has what the command says of all kernels. UserErrors: module.file, module.too-large, module.kernels (none, or more than
// max_kernels), json.*.
inline constexpr size_t max_kernels = 1000;
Module read_module(const std::filesystem::path &file, const KernelOptions &common);

// "[<name>=]<algorithm>[:<dim>=<extent>,…]". UserError command.kernel.
ModuleKernel parse_kernel(const std::string &word, const KernelOptions &common);

}  // namespace tessera

// From tile programs to source for GPUs: OpenCL C or CUDA C++, and the C file whose functions an application calls. One
// kernel function for each stage at root; block loops are its grid, thread loops what its threads do, with the program's
// barriers between them. Everything else is a plain C emitter, and the bits are the interpreter's: fma is a function, and
// nothing may be contracted, reassociated or flushed.
#pragma once
#include "compiler/emit/emit_library.h"

namespace tessera {

struct GpuSource {
    std::string kernels;  // OpenCL C or CUDA C++
    bool uses_double = false;
};

// The kernel functions of all variants of all kernels. Throws UserError emit.* for what the target cannot do.
GpuSource kernels_of(const std::vector<Kernel> &kernels, const Target &target);

// The C file with the public symbols `name` and `name_workspace` (see emit_header) of each kernel. It loads `image`, which is
// what the application's device gets: the kernels' source for OpenCL, their PTX for CUDA.
std::string host_of(const std::vector<Kernel> &kernels, const Target &target, const std::string &image, bool uses_double);

}  // namespace tessera

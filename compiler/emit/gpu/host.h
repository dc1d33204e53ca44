// The C functions in which the host launches the kernels of a program.
#pragma once
#include "compiler/emit/gpu/kernels.h"

namespace tessera::emit_gpu {

class Host {
public:
    // All three must outlive it; the others are those of the whole file.
    Host(const Target &target, const Constants &constants, const Callees &callees);

    // For a variant of the kernel: "<stem>_plan" and "<stem>_body" of runtime/abi/kernel.h.
    std::string functions_of(const TileProgram &program, const KernelProgram &kernels, const std::string &stem,
                             const std::string &kernel) const;
    // For a callee: "<stem>_rooms", which says how much of the workspace it needs, and "<stem>_run".
    std::string functions_of_callee(const TileProgram &program, const KernelProgram &kernels, const std::string &stem) const;

private:
    const Target &target_;
    const Constants &constants_;
    const Callees &callees_;
};

}  // namespace tessera::emit_gpu

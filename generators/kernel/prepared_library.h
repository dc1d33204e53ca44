// The kernels of one library, prepared: each for all targets, under names that do not meet.
#pragma once
#include <string>
#include <vector>

#include "generators/kernel/prepare.h"
#include "generators/registry/module.h"

namespace tessera {

struct PreparedLibrary {
    std::string name;                                  // of its files
    bool is_module = false;                            // otherwise it has one kernel, by whose name it is called
    std::vector<std::vector<PreparedKernel>> kernels;  // each for the same targets, best first

    const std::vector<PreparedKernel> &first() const { return kernels.front(); }
};

// That of one kernel.
PreparedLibrary library_of(std::vector<PreparedKernel> targets);

// Prepares all kernels. UserErrors of prepare_all, which name the kernel where there may be several; module.name: a library's name that no
// file can have, or functions of two kernels with one name.
PreparedLibrary prepare_library(const Registry &registry, const Module &module, const PreparationObserver &observer = {});

}  // namespace tessera

// How much workspace a program asks for, with what it invokes, at given extents.
#pragma once
#include "compiler/tile/kernel.h"

namespace tessera {

// Bytes that all workers share, and bytes of each worker.
struct WorkspaceNeed {
    int64_t shared = 0, worker = 0;
    int64_t of(int64_t workers) const { return shared + workers * worker; }
};

// What library code asks for (emitters that lay memory out otherwise, such as C's, may ask for more). Extents that are not given are
// typical ones (memory_plan.h). `invoked`: the programs that it invokes are among these.
WorkspaceNeed workspace_need(const TileProgram &program, const std::vector<TileProgram> &invoked,
                             const std::map<std::string, int64_t> &extents);

// The same of the variant that the kernel runs at these extents.
WorkspaceNeed workspace_need(const Kernel &kernel, const std::map<std::string, int64_t> &extents);

}  // namespace tessera

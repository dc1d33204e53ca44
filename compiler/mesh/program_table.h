// A program over a mesh as the table that runtime/mesh/program.h runs: each part is a kernel, each collective is started as early and
// waited for as late as what it takes and gives allows, and what lies between lives in an arena as long as somebody reads it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/mesh/program.h"

namespace tessera {

struct ProgramTable {
    // Memory that the caller gives to tess_mesh_run, at this place of its list; local buffers come behind these, and are null there.
    struct Buffer {
        std::string name;  // of the input, state or output
        uint64_t bytes = 0;
    };
    std::vector<Buffer> buffers;
    int32_t local_buffers = 0;
    uint64_t arena_bytes = 0;
    // Kernel i is part i, in the program's order. Its tensors are those of the part in its order, constants left out, then its outputs, as
    // compiled kernels without packed operands have them.
    std::vector<const Algorithm *> kernels;  // of the program, which must live as long
    std::vector<uint64_t> words;             // the bytes of the table, the same for all ranks
};

// `program` is legal (verify). UserErrors mesh.extent where a dim of a tensor has no fixed extent, mesh.table where a tensor has elements
// of half a byte or more dims than a table's, or two outputs are one tensor.
ProgramTable program_table(const MeshProgram &program);

}  // namespace tessera

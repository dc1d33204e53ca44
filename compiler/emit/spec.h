// The table of runtime/abi/kernel.h, by which the runtime checks the arguments of a kernel.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/tile/arguments.h"
#include "compiler/tile/kernel.h"

namespace tessera {

// The TessDType of runtime/abi/tessera.h; an index has none.
int32_t abi_dtype(DType type);
// The mask of 1 << TessCpuFeature.
uint64_t feature_mask(const std::vector<std::string> &features);
// Where the members of a kernel's struct of parameters are, in bytes, and the bytes of the struct, as C lays it out.
struct ParameterLayout {
    std::vector<int64_t> offsets;
    int64_t bytes = 0;
};
ParameterLayout parameter_layout(const TileProgram &program);
// The table of runtime/abi/kernel.h that describes kernel number `kernel` of a library. `targets`, best first; UserError emit.abi where it
// has more of something than the table can hold.
std::vector<int64_t> spec_of(const std::vector<TargetKernels> &targets, size_t kernel);
// As much of it as a program's own code needs: the slots of its frame.
std::vector<int64_t> spec_of(const TileProgram &program);
// The same where it runs on the target's device.
std::vector<int64_t> spec_of(const TileProgram &program, const Target &target);
// The bytes that tess_abi2_stream stores at once with the program's features.
int32_t stream_vector_bytes(const TileProgram &program);

}  // namespace tessera

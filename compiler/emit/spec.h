// The table of runtime/kernel.h, by which the runtime checks the arguments of a kernel.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/tile/arguments.h"

namespace tessera {

// The TessDType of runtime/tessera.h; an index has none.
int32_t abi_dtype(DType type);
// The mask of 1 << TessCpuFeature.
uint64_t feature_mask(const std::vector<std::string> &features);
// The same kernel for one of a library's targets: what it asks of the processor, and the layouts of its packed arguments.
struct TargetLayouts {
    uint64_t features = 0;
    const TileProgram *program = nullptr;
};
// The table of runtime/kernel.h that describes a kernel's arguments. `targets`, best first: where packed arguments have
// layouts that differ by target; without it those of `program` hold for all.
std::vector<int64_t> spec_of(const TileProgram &program, uint64_t required_features, const std::vector<TargetLayouts> &targets = {});

}  // namespace tessera

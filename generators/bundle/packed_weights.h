// Tensors in the packed form that a kernel takes (runtime/abi/tessera.h), made without running code of the kernel: so for processors other
// than this one too. The bytes are those that `<kernel>_pack_<operand>` writes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/expr/dtype.h"

namespace tessera {

struct PackedForm {
    std::vector<std::string> dims;    // of the operand
    std::vector<std::string> layout;  // axes: "K", "N/16", "N%16"
    uint64_t hash = 0;                // of the layout
    DType dtype = DType::f32;         // of at least a byte
};

// `bytes` are the dense elements of a tensor of these extents. UserError bundle.packed for a layout that is none of these dims, or more
// bytes than there can be.
std::string packed_bytes(const PackedForm &form, const std::vector<int64_t> &extents, std::string_view bytes, const std::string &subject);

}  // namespace tessera

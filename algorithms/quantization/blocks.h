// Which elements of a tensor share a scale.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

// A tensor is cut into boxes of these extents, one extent for each axis; 0 is the whole axis. Along an axis that is not whole, the last box
// may be smaller.
struct Blocks {
    std::vector<int64_t> extents;
    friend bool operator==(const Blocks &, const Blocks &) = default;
};

// All elements; those of one index of an axis; `size` neighbours along an axis. An axis below 0 counts from the last. UserErrors
// quantization.axis where there is no such axis, quantization.group for a size under 1.
Blocks per_tensor(size_t rank);
Blocks per_channel(size_t rank, int64_t axis);
Blocks per_group(size_t rank, int64_t axis, int64_t size);

// The shape of a tensor with one number for each block: no axis for those that are whole, and [1] where all are.
std::vector<int64_t> block_counts(const std::vector<int64_t> &extents, const Blocks &blocks);

int64_t element_count(const std::vector<int64_t> &extents);
// For each element in row-major order, the number of its block, in the row-major order of blocks. InternalError where ranks differ.
std::vector<uint32_t> block_of_each(const std::vector<int64_t> &extents, const Blocks &blocks);

}  // namespace tessera

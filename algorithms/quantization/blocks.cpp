#include "algorithms/quantization/blocks.h"

#include "support/text/error.h"

namespace tessera {

static size_t checked_axis(size_t rank, int64_t axis) {
    const auto count = static_cast<int64_t>(rank);
    if (axis < -count || axis >= count)
        throw UserError("quantization.axis", "expected an axis of a tensor with " + std::to_string(count) + ", so " +
                                                 std::to_string(-count) + " to " + std::to_string(count - 1) + "; got " +
                                                 std::to_string(axis) + ".");
    return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

Blocks per_tensor(size_t rank) { return {std::vector<int64_t>(rank, 0)}; }

Blocks per_channel(size_t rank, int64_t axis) {
    Blocks made = per_tensor(rank);
    made.extents[checked_axis(rank, axis)] = 1;
    return made;
}

Blocks per_group(size_t rank, int64_t axis, int64_t size) {
    if (size < 1) throw UserError("quantization.group", "a group has 1 or more elements; got " + std::to_string(size) + ".");
    Blocks made{std::vector<int64_t>(rank, 1)};
    made.extents[checked_axis(rank, axis)] = size;
    return made;
}

std::vector<int64_t> block_counts(const std::vector<int64_t> &extents, const Blocks &blocks) {
    require(extents.size() == blocks.extents.size(), "blocks are of a tensor's rank");
    std::vector<int64_t> counts;
    for (size_t i = 0; i < extents.size(); i++)
        if (const int64_t block = blocks.extents[i]) counts.push_back(extents[i] / block + (extents[i] % block != 0));
    return counts.empty() ? std::vector<int64_t>{1} : counts;
}

int64_t element_count(const std::vector<int64_t> &extents) {
    int64_t count = 1;
    for (int64_t extent : extents) count *= extent;
    return count;
}

std::vector<uint32_t> block_of_each(const std::vector<int64_t> &extents, const Blocks &blocks) {
    require(extents.size() == blocks.extents.size(), "blocks are of a tensor's rank");
    const auto count = static_cast<size_t>(element_count(extents));
    std::vector<uint32_t> made(count);
    // Axis by axis from the last: `inner` elements and `inner_blocks` blocks lie below one index of the axis.
    size_t inner = 1, inner_blocks = 1;
    for (size_t axis = extents.size(); axis-- > 0 && count > 0;) {
        const auto extent = static_cast<size_t>(extents[axis]), block = static_cast<size_t>(blocks.extents[axis]);
        if (block) {
            for (size_t first = 0, index = 0; first < count; first += inner, index = index + 1 == extent ? 0 : index + 1) {
                const auto step = static_cast<uint32_t>(index / block * inner_blocks);
                for (size_t i = first; step && i < first + inner; i++) made[i] += step;
            }
            inner_blocks *= extent / block + (extent % block != 0);
        }
        inner *= extent;
    }
    return made;
}

}  // namespace tessera

#include "algorithms/quantization/observer.h"

#include "support/text/error.h"

namespace tessera {

void Observer::observe(std::span<const float> values, const std::vector<int64_t> &extents) {
    if (extents.size() != blocks_.extents.size())
        throw UserError("quantization.pieces", "expected pieces with " + std::to_string(blocks_.extents.size()) + " axes, got one with " +
                                                   std::to_string(extents.size()) + ".");
    require(static_cast<size_t>(element_count(extents)) == values.size(), "a piece has the elements that its extents say");
    std::vector<int64_t> shared;
    for (size_t i = 0; i < extents.size(); i++)
        if (blocks_.extents[i]) shared.push_back(extents[i]);
    if (!distributions_.empty() && shared != shared_)
        throw UserError("quantization.pieces",
                        "expected a piece with the extents of earlier ones along axes that have several blocks. Only axes that share one "
                        "scale may differ.");
    require_finite(values);
    if (distributions_.empty()) distributions_.resize(static_cast<size_t>(element_count(block_counts(extents, blocks_))));
    shared_ = shared;

    if (distributions_.size() == 1) return distributions_[0].add(values);
    // Sorted by block, each block's values together.
    const std::vector<uint32_t> block = block_of_each(extents, blocks_);
    std::vector<size_t> ends(distributions_.size() + 1);
    for (uint32_t b : block) ends[b + 1]++;
    for (size_t b = 0; b < distributions_.size(); b++) ends[b + 1] += ends[b];
    std::vector<float> sorted(values.size());
    std::vector<size_t> next(ends.begin(), ends.end() - 1);
    for (size_t i = 0; i < values.size(); i++) sorted[next[block[i]]++] = values[i];
    for (size_t b = 0; b < distributions_.size(); b++) distributions_[b].add(std::span(sorted).subspan(ends[b], ends[b + 1] - ends[b]));
}

}  // namespace tessera

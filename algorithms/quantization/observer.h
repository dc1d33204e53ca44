// What was seen of a tensor, block by block. Weights come at once; activations in pieces, batch by batch.
#pragma once
#include <span>
#include <vector>

#include "algorithms/quantization/blocks.h"
#include "algorithms/quantization/distribution.h"

namespace tessera {

class Observer {
public:
    explicit Observer(Blocks blocks) : blocks_(std::move(blocks)) {}

    // A piece, row-major. Axes that are whole in the blocks may have another extent in each piece. UserErrors quantization.pieces where the
    // other axes differ from those of earlier pieces, and of Distribution::add, which leave the observer as it was.
    void observe(std::span<const float> values, const std::vector<int64_t> &extents);

    const Blocks &blocks() const { return blocks_; }
    const std::vector<Distribution> &distributions() const { return distributions_; }  // of each block, in row-major order; none at first

private:
    Blocks blocks_;
    std::vector<int64_t> shared_;  // extents of the axes that are not whole
    std::vector<Distribution> distributions_;
};

}  // namespace tessera

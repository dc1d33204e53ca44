// Elements of a tensor that are made when they are first used, a chunk at a time: of a large tensor, an interpreter that computes a few
// blocks uses few.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tessera {

class ElementsOnDemand {
public:
    // `make(first, count)` makes elements; it is called once for each chunk of 2^chunk_log2 elements, the last of which may be shorter.
    using Make = std::function<void(int64_t first, int64_t count)>;
    ElementsOnDemand(int64_t elements, int chunk_log2, Make make)
        : elements_(elements), chunk_log2_(chunk_log2), make_(std::move(make)), made_(static_cast<size_t>((elements >> chunk_log2) + 1)) {}

    void use(int64_t element) {
        if (!made_[static_cast<size_t>(element >> chunk_log2_)]) [[unlikely]]
            make_chunk(element >> chunk_log2_);
    }
    // Ranges of elements that were made, ascending, none beside the next: the first of each, and how many.
    std::vector<std::pair<int64_t, int64_t>> made() const;

private:
    int64_t elements_;
    int chunk_log2_;
    Make make_;
    std::vector<uint8_t> made_;
    void make_chunk(int64_t chunk);
};

}  // namespace tessera

// An array as large as it says whose elements are made when they are first used: memory that nobody uses is never touched.
#pragma once
#include <memory>
#include <string>

#include "algorithms/evaluate/elements_on_demand.h"
#include "algorithms/evaluate/tape.h"

namespace tessera {

class LazyArray {
public:
    // `make` writes elements first to first + count - 1 to where it is told.
    using Make = std::function<void(int64_t first, int64_t count, std::byte *to)>;
    LazyArray(DType type, std::vector<int64_t> shape, Make make, int chunk_log2 = 10);
    LazyArray(const LazyArray &) = delete;
    LazyArray &operator=(const LazyArray &) = delete;

    TensorView view(const std::string &name);  // as long as this lives
    DType dtype() const { return type_; }
    // Ranges of elements that were used, with what is in their chunks: the first of each, and how many.
    std::vector<std::pair<int64_t, int64_t>> used() const { return elements_.made(); }
    const std::byte *at(int64_t element) const { return memory_.get() + element * size_of(type_); }  // one that was used

private:
    DType type_;
    std::vector<int64_t> shape_;
    std::unique_ptr<std::byte[]> memory_;
    ElementsOnDemand elements_;
};

}  // namespace tessera

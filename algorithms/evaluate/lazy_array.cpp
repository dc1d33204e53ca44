#include "algorithms/evaluate/lazy_array.h"

namespace tessera {

static int64_t product(const std::vector<int64_t> &shape) {
    int64_t all = 1;
    for (int64_t n : shape) all *= n;
    return all;
}

LazyArray::LazyArray(DType type, std::vector<int64_t> shape, Make make, int chunk_log2)
    : type_(type),
      shape_(std::move(shape)),
      memory_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(product(shape_) * size_of(type)))),
      elements_(product(shape_), chunk_log2, [this, make = std::move(make)](int64_t first, int64_t count) {
          make(first, count, memory_.get() + first * size_of(type_));
      }) {}

TensorView LazyArray::view(const std::string &name) { return {name, type_, memory_.get(), shape_, row_major_strides(shape_), &elements_}; }

}  // namespace tessera

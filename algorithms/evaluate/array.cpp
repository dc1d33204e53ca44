#include "algorithms/evaluate/array.h"

#include "support/text/error.h"

namespace tessera {

Array::Array(DType type, std::vector<int64_t> shape) : dtype(type), extents(std::move(shape)) {
    data.resize(static_cast<size_t>(size()) * static_cast<size_t>(size_of(dtype)));
}

Array::Array(DType type, std::vector<int64_t> shape, const std::vector<double> &values) : Array(type, std::move(shape)) {
    require(static_cast<int64_t>(values.size()) == size(),
            "an array of " + std::to_string(size()) + " elements is given " + std::to_string(values.size()) + " values");
    for (size_t i = 0; i < values.size(); i++)
        set(static_cast<int64_t>(i), convert(type, Rounding::nearest_even, !is_float(type), Scalar::of_real(DType::f64, values[i])));
}

Array Array::of(const std::vector<int64_t> &shape, const std::vector<Scalar> &values) {
    require(!values.empty(), "an array without elements has no type");
    Array a(values[0].type, shape);
    require(static_cast<int64_t>(values.size()) == a.size(), "values do not fill the array");
    for (size_t i = 0; i < values.size(); i++) a.set(static_cast<int64_t>(i), values[i]);
    return a;
}

int64_t Array::size() const {
    int64_t n = 1;
    for (int64_t e : extents) n *= e;
    return n;
}

Scalar Array::get(int64_t position) const { return load_scalar(dtype, data.data() + position * size_of(dtype)); }

void Array::set(int64_t position, const Scalar &value) {
    require(value.type == dtype && position >= 0 && position < size(), "an element set outside of its array or type");
    store_scalar(data.data() + position * size_of(dtype), value);
}

std::vector<double> Array::values() const {
    std::vector<double> all;
    for (int64_t i = 0; i < size(); i++) {
        Scalar s = get(i);
        all.push_back(is_float(dtype) ? s.real : static_cast<double>(s.integer));
    }
    return all;
}

static int64_t row_of(const Array &a) { return a.extents.empty() ? 1 : a.extents.back(); }

Array in_bytes(const Array &halves) {
    require(is_in_half_bytes(halves.dtype), "only types of four bits have half bytes");
    std::vector<int64_t> extents = halves.extents;
    if (!extents.empty()) extents.back() = (extents.back() + 1) / 2;
    Array bytes(DType::u8, extents);
    const int64_t row = row_of(halves), step = row_of(bytes);
    for (int64_t i = 0; i < halves.size(); i++) {
        std::byte &to = bytes.data[static_cast<size_t>(i / row * step + i % row / 2)];
        to |= halves.data[static_cast<size_t>(i)] << (i % row % 2 ? 4 : 0);
    }
    return bytes;
}

Array from_bytes(const Array &bytes, DType type, std::vector<int64_t> extents) {
    require(is_in_half_bytes(type) && bytes.dtype == DType::u8, "only types of four bits have half bytes");
    Array halves(type, std::move(extents));
    const int64_t row = row_of(halves), step = row_of(bytes);
    require(step == (row + 1) / 2, "bytes of rows of this length");
    for (int64_t i = 0; i < halves.size(); i++) {
        const std::byte from = bytes.data[static_cast<size_t>(i / row * step + i % row / 2)];
        halves.data[static_cast<size_t>(i)] = (i % row % 2 ? from >> 4 : from) & std::byte{15};
    }
    return halves;
}

TensorView Array::view(const std::string &name) { return {name, dtype, data.data(), extents, row_major_strides(extents)}; }

}  // namespace tessera

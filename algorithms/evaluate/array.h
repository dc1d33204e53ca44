// A dense row-major tensor in memory: what the reference interpreter takes and gives.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/evaluate/tape.h"

namespace tessera {

struct Array {
    DType dtype = DType::f32;  // any stored type
    std::vector<int64_t> extents;
    std::vector<std::byte> data;

    Array() = default;
    Array(DType type, std::vector<int64_t> shape);                                          // zeros
    Array(DType type, std::vector<int64_t> shape, const std::vector<double> &values);       // converted: to nearest, saturating
    static Array of(const std::vector<int64_t> &shape, const std::vector<Scalar> &values);  // all of one type; not empty

    int64_t size() const;                // elements
    Scalar get(int64_t position) const;  // in row-major order
    void set(int64_t position, const Scalar &value);
    std::vector<double> values() const;  // integers beyond 2^53 lose bits
    TensorView view(const std::string &name);
    friend bool operator==(const Array &, const Array &) = default;  // bitwise
};

// An array of elements of four bits as a kernel takes it: two to a byte, each row along the last axis from a new byte on. An array has a
// byte for each element, whatever its type.
Array in_bytes(const Array &halves);
// The array of these extents that in_bytes makes into that; the last half of a row of odd length is not looked at.
Array from_bytes(const Array &bytes, DType type, std::vector<int64_t> extents);

}  // namespace tessera

// Numbers as codes with scales, and what that costs in accuracy.
#pragma once
#include "algorithms/quantization/scales.h"

namespace tessera {

struct QuantizedValues {
    const CodeFormat *format = nullptr;
    std::vector<int64_t> extents;
    Blocks blocks;
    Scales scales;
    std::vector<uint8_t> codes;  // row-major, one in a byte
};

// The code nearest to value / scale + zero, both in f32, of each value. UserError quantization.not-finite; InternalError where scales are
// not of these blocks.
QuantizedValues quantize(std::span<const float> values, const std::vector<int64_t> &extents, const Blocks &blocks, const CodeFormat &format,
                         Scales scales);
// With scales chosen of the values themselves, as weights are quantised.
QuantizedValues quantize(std::span<const float> values, const std::vector<int64_t> &extents, const Blocks &blocks, const CodeFormat &format,
                         const ScaleRule &rule);
QuantizedValues quantize_per_tensor(std::span<const float> values, const std::vector<int64_t> &extents, const CodeFormat &format,
                                    const ScaleRule &rule = {});
QuantizedValues quantize_per_channel(std::span<const float> values, const std::vector<int64_t> &extents, int64_t axis,
                                     const CodeFormat &format, const ScaleRule &rule = {});
QuantizedValues quantize_per_group(std::span<const float> values, const std::vector<int64_t> &extents, int64_t axis, int64_t size,
                                   const CodeFormat &format, const ScaleRule &rule = {});

// What codes stand for: scale (code - zero), rounded once to f32.
std::vector<float> dequantize(const QuantizedValues &q);

struct QuantizationError {
    double largest = 0;       // difference
    double relative = 0;      // root mean square of differences, over that of values; 0 where all are 0
    double decibels() const;  // signal to quantisation noise, -20 log10(relative); infinite where nothing differs
};
QuantizationError error_of(const QuantizedValues &q, std::span<const float> values);
// That of other values that take the place of these.
QuantizationError error_of(std::span<const float> made, std::span<const float> values);

// The bytes of a tensor as a file keeps it and a kernel takes it.
struct StoredTensor {
    std::string name;
    DType type = DType::u8;
    std::vector<int64_t> extents;
    std::string bytes;  // row-major
};

// Numbers as a float type keeps them, each rounded to the nearest, and what is beyond its largest number to that one.
StoredTensor stored_floats(const std::string &name, DType type, const std::vector<int64_t> &extents, const std::vector<float> &values);

// Codes by the name itself, and "<name>_scales", "<name>_zeros" (in the codes' type) and "<name>_tensor_scale" (f32, no dims) where there
// are such, with the axes that block_counts says. Codes of 4 bits have half the last extent, in u8, the first of two in the low half: the
// bytes of a kernel's tensor of u4, i4 or f4e2m1fn, whose last extent is twice as long. `transposed` swaps the two axes of a matrix, in
// codes, and in scales that have both. UserErrors quantization.packing for codes of 4 bits with an odd last extent, quantization.transpose
// for what is no matrix.
std::vector<StoredTensor> stored_tensors(const QuantizedValues &q, const std::string &name, bool transposed = false);

}  // namespace tessera

#include "algorithms/quantization/quantized_values.h"

#include <cmath>
#include <limits>

#include "support/text/error.h"

namespace tessera {

QuantizedValues quantize(std::span<const float> values, const std::vector<int64_t> &extents, const Blocks &blocks, const CodeFormat &format,
                         Scales scales) {
    require(static_cast<size_t>(element_count(extents)) == values.size(), "values are as many as extents say");
    require(static_cast<size_t>(element_count(block_counts(extents, blocks))) == scales.scales.size(), "a block has a scale");
    require_finite(values);
    QuantizedValues q{&format, extents, blocks, std::move(scales), std::vector<uint8_t>(values.size())};
    const std::vector<uint32_t> block = block_of_each(extents, blocks);
    for (size_t i = 0; i < values.size(); i++) {
        const int zero = q.scales.zero(block[i]);
        q.codes[i] = format.code_of(format.nearest(values[i] / q.scales.number(block[i]), zero), zero);
    }
    return q;
}

QuantizedValues quantize(std::span<const float> values, const std::vector<int64_t> &extents, const Blocks &blocks, const CodeFormat &format,
                         const ScaleRule &rule) {
    Observer observer(blocks);
    observer.observe(values, extents);
    return quantize(values, extents, blocks, format, choose_scales(observer, format, rule));
}

QuantizedValues quantize_per_tensor(std::span<const float> values, const std::vector<int64_t> &extents, const CodeFormat &format,
                                    const ScaleRule &rule) {
    return quantize(values, extents, per_tensor(extents.size()), format, rule);
}

QuantizedValues quantize_per_channel(std::span<const float> values, const std::vector<int64_t> &extents, int64_t axis,
                                     const CodeFormat &format, const ScaleRule &rule) {
    return quantize(values, extents, per_channel(extents.size(), axis), format, rule);
}

QuantizedValues quantize_per_group(std::span<const float> values, const std::vector<int64_t> &extents, int64_t axis, int64_t size,
                                   const CodeFormat &format, const ScaleRule &rule) {
    return quantize(values, extents, per_group(extents.size(), axis, size), format, rule);
}

std::vector<float> dequantize(const QuantizedValues &q) {
    const std::vector<uint32_t> block = block_of_each(q.extents, q.blocks);
    std::vector<float> made(q.codes.size());
    for (size_t i = 0; i < made.size(); i++) made[i] = q.scales.number(block[i]) * q.format->number_of(q.codes[i], q.scales.zero(block[i]));
    return made;
}

double QuantizationError::decibels() const { return relative > 0 ? -20 * std::log10(relative) : std::numeric_limits<double>::infinity(); }

QuantizationError error_of(const QuantizedValues &q, std::span<const float> values) { return error_of(dequantize(q), values); }

QuantizationError error_of(std::span<const float> made, std::span<const float> values) {
    require(values.size() == made.size(), "values are as many as what takes their place");
    QuantizationError error;
    double noise = 0, signal = 0;
    for (size_t i = 0; i < values.size(); i++) {
        const double value = values[i], difference = value - static_cast<double>(made[i]);
        error.largest = std::max(error.largest, std::fabs(difference));
        noise += difference * difference, signal += value * value;
    }
    error.relative = signal > 0 ? std::sqrt(noise / signal) : 0;
    return error;
}

namespace {

template <typename T>
std::vector<T> transpose(const std::vector<T> &values, const std::vector<int64_t> &extents) {
    const auto rows = static_cast<size_t>(extents[0]), columns = static_cast<size_t>(extents[1]);
    std::vector<T> made(values.size());
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) made[c * rows + r] = values[r * columns + c];
    return made;
}

}  // namespace

StoredTensor stored_floats(const std::string &name, DType type, const std::vector<int64_t> &extents, const std::vector<float> &values) {
    StoredTensor made{name, type, extents, std::string(values.size() * static_cast<size_t>(size_of(type)), '\0')};
    for (size_t i = 0; i < values.size(); i++)
        store_scalar(made.bytes.data() + i * static_cast<size_t>(size_of(type)),
                     convert(type, Rounding::nearest_even, true, Scalar::of_real(DType::f32, static_cast<double>(values[i]))));
    return made;
}

std::vector<StoredTensor> stored_tensors(const QuantizedValues &q, const std::string &name, bool transposed) {
    std::vector<uint8_t> codes = q.codes;
    std::vector<int64_t> extents = q.extents, counts = block_counts(q.extents, q.blocks);
    std::vector<float> scales = q.scales.scales;
    std::vector<int> zeros = q.scales.zeros;
    if (transposed) {
        if (extents.size() != 2)
            throw UserError("quantization.transpose",
                            "tensor '" + name + "': expected a matrix to transpose; it has " + std::to_string(extents.size()) + " axes.");
        codes = transpose(codes, extents);
        std::swap(extents[0], extents[1]);
        if (counts.size() == 2) {
            scales = transpose(scales, counts);
            if (!zeros.empty()) zeros = transpose(zeros, counts);
            std::swap(counts[0], counts[1]);
        }
    }
    StoredTensor whole{name, q.format->type, extents, {}};
    if (q.format->bits == 4) {
        if (extents.empty() || extents.back() % 2)
            throw UserError("quantization.packing", "tensor '" + name + "': a byte has two codes of " + q.format->name +
                                                        ", so the last axis needs an even extent; it has " +
                                                        (extents.empty() ? "none" : std::to_string(extents.back())) + ".");
        whole.extents.back() /= 2;
        for (size_t i = 0; i < codes.size(); i += 2) whole.bytes.push_back(static_cast<char>(codes[i] | codes[i + 1] << 4));
    } else {
        whole.bytes.assign(codes.begin(), codes.end());
    }
    std::vector<StoredTensor> made = {std::move(whole), stored_floats(name + "_scales", q.scales.type, counts, scales)};
    if (!zeros.empty()) {
        StoredTensor stored{name + "_zeros", q.format->type, counts, {}};
        for (int zero : zeros) stored.bytes.push_back(static_cast<char>(zero + q.format->offset));
        made.push_back(std::move(stored));
    }
    if (q.scales.tensor_scale) made.push_back(stored_floats(name + "_tensor_scale", DType::f32, {}, {*q.scales.tensor_scale}));
    return made;
}

}  // namespace tessera

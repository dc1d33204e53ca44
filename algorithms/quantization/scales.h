// Scales and zero points of what was seen.
#pragma once
#include <optional>

#include "algorithms/quantization/code_format.h"
#include "algorithms/quantization/observer.h"

namespace tessera {

enum class Fit {
    min_max,     // nothing is cut
    percentile,  // what lies beyond a percentile is cut
    mse,         // cut where the squares of all errors have the least sum, among `clip_ratios` parts of the range
};
constexpr const char *fit_names[] = {"minmax", "percentile", "mse"};

struct ScaleRule {
    Fit fit = Fit::min_max;
    double percent = 99.9;      // of magnitudes, or with zero points of values at each end: (100 - percent), percent
    bool zero_points = false;   // of integers: the range need not be symmetric around 0, which keeps an exact code all the same
    DType scales = DType::f32;  // f32, f16, bf16, f8e8m0fnu, f8e4m3fn
};

// One for each block, in row-major order. A scale's number is scales[i], or scales[i] * tensor_scale in f32 where there is one.
struct Scales {
    DType type = DType::f32;
    std::vector<float> scales;
    std::optional<float> tensor_scale;  // of f8e4m3fn scales, as NVFP4 has it
    std::vector<int> zeros;             // none where all are 0
    float number(size_t block) const { return tensor_scale ? scales[block] * *tensor_scale : scales[block]; }
    int zero(size_t block) const { return zeros.empty() ? 0 : zeros[block]; }
};

// A block's scale is limit / format.largest(), at least 2^-126, where limit is the largest magnitude or less, rounded up to the scales'
// type; with zero points it is (highest - lowest) / (number of codes - 1), where lowest <= 0 <= highest. A tensor scale makes the largest
// scale the largest number of its type. Where codes of what is there would stand for infinity, it is rounded down. UserError
// quantization.rule for zero points of floats, uint8 without zero points, scales of other types, scales above the largest number of their
// type and percentages outside of 50 ..= 100.
Scales choose_scales(const Observer &observer, const CodeFormat &format, const ScaleRule &rule);

}  // namespace tessera

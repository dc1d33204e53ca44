// What was seen of some numbers: all of them while they are few, then counts in bins.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

// UserError quantization.not-finite for NaN and infinities.
void require_finite(std::span<const float> values);

class Distribution {
public:
    static constexpr size_t max_kept = 1 << 16, max_bins = 1 << 14;

    // As require_finite. The result does not depend on the order or on how numbers come in pieces.
    void add(std::span<const float> values);

    uint64_t count() const { return count_; }
    float lowest() const { return lowest_; }    // 0 where there are none
    float highest() const { return highest_; }  // 0 where there are none
    bool is_exact() const { return bins_.empty(); }

    // What `percent` per cent of the numbers, or of their magnitudes, are not above: between neighbours by a straight line, as
    // numpy.percentile does. Of bins, at most a bin's width beside it, (highest - lowest) / 2^13. 0 where there are none.
    double percentile(double percent) const;
    double percentile_of_magnitudes(double percent) const;

    // Numbers and how many there are of each: every one that was seen, or the middles of bins that are not empty.
    struct Weighted {
        std::vector<float> values, weights;
    };
    Weighted weighted() const;

private:
    void to_bins();
    void widen_for(float lowest, float highest);
    void count_in_bins(std::span<const float> values);
    double bin_percentile(double percent, bool magnitudes) const;

    uint64_t count_ = 0;
    float lowest_ = 0, highest_ = 0;
    std::vector<float> kept_;
    // Bin i has the numbers from (first_ + i) 2^exponent_ to the next. The exponent is the least that the range allows.
    std::vector<uint64_t> bins_;
    int64_t first_ = 0;
    int exponent_ = 0;
};

}  // namespace tessera

#include "algorithms/quantization/distribution.h"

#include <algorithm>
#include <cmath>

#include "support/text/error.h"

namespace tessera {

static int64_t bin_of(float value, int exponent) {
    return static_cast<int64_t>(std::floor(std::ldexp(static_cast<double>(value), -exponent)));
}

void require_finite(std::span<const float> values) {
    float sum = 0;
    for (float v : values) sum += v * 0;
    if (sum != 0)
        throw UserError(
            "quantization.not-finite",
            "expected finite numbers to quantise; there is NaN or an infinity among them. Leave the tensor as it is, or clean it.");
}

void Distribution::add(std::span<const float> values) {
    require_finite(values);
    if (values.empty()) return;
    float lowest = values[0], highest = values[0];
    for (float v : values) lowest = std::min(lowest, v), highest = std::max(highest, v);
    lowest_ = count_ ? std::min(lowest_, lowest) : lowest;
    highest_ = count_ ? std::max(highest_, highest) : highest;
    count_ += values.size();
    if (is_exact() && kept_.size() + values.size() <= max_kept) {
        kept_.insert(kept_.end(), values.begin(), values.end());
        return;
    }
    if (is_exact()) to_bins();
    widen_for(lowest_, highest_);
    count_in_bins(values);
}

void Distribution::to_bins() {
    exponent_ = -160;  // below the distance of any two floats
    first_ = 0;
    bins_.assign(1, 0);
    // As if they came now: bins are of the range of all numbers.
    std::vector<float> kept;
    kept.swap(kept_);
    widen_for(lowest_, highest_);
    count_in_bins(kept);
}

void Distribution::widen_for(float lowest, float highest) {
    // A double has integers up to 2^53, so begin where positions are that small.
    const int least = std::max(exponent_, std::ilogb(std::max({std::fabs(lowest), std::fabs(highest), 0x1p-149f})) - 40);
    int exponent = least;
    while (bin_of(highest, exponent) - bin_of(lowest, exponent) >= static_cast<int64_t>(max_bins)) exponent++;
    const int64_t first = bin_of(lowest, exponent), last = bin_of(highest, exponent);
    std::vector<uint64_t> bins(static_cast<size_t>(last - first + 1));
    for (size_t i = 0; i < bins_.size(); i++)
        if (bins_[i])
            bins[static_cast<size_t>(((first_ + static_cast<int64_t>(i)) >> std::min(63, exponent - exponent_)) - first)] += bins_[i];
    bins_ = std::move(bins), first_ = first, exponent_ = exponent;
}

void Distribution::count_in_bins(std::span<const float> values) {
    const double scale = std::ldexp(1.0, -exponent_);
    for (float v : values) bins_[static_cast<size_t>(static_cast<int64_t>(std::floor(static_cast<double>(v) * scale)) - first_)]++;
}

// numpy's lerp: exact at both ends.
static double between(double a, double b, double t) { return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t); }

static double exact_percentile(std::vector<float> values, double percent) {
    if (values.empty()) return 0;
    const double rank = percent / 100 * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(rank);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
    std::nth_element(values.begin(), at, values.end());
    const double a = *at;
    if (below + 1 == values.size()) return a;
    return between(a, *std::min_element(at + 1, values.end()), rank - static_cast<double>(below));
}

double Distribution::percentile(double percent) const {
    return is_exact() ? exact_percentile(kept_, percent) : bin_percentile(percent, false);
}

double Distribution::percentile_of_magnitudes(double percent) const {
    if (!is_exact()) return bin_percentile(percent, true);
    std::vector<float> magnitudes = kept_;
    for (float &v : magnitudes) v = std::fabs(v);
    return exact_percentile(std::move(magnitudes), percent);
}

double Distribution::bin_percentile(double percent, bool magnitudes) const {
    int64_t first = first_;
    std::vector<uint64_t> bins = bins_;
    double lowest = lowest_, highest = highest_;
    if (magnitudes) {  // bin i and bin -1 - i have the same magnitudes
        const int64_t last = first_ + static_cast<int64_t>(bins_.size()) - 1;
        const auto fold = [](int64_t i) { return i < 0 ? -1 - i : i; };
        first = first_ <= 0 && last >= -1 ? 0 : std::min(fold(first_), fold(last));
        bins.assign(static_cast<size_t>(std::max(fold(first_), fold(last)) - first + 1), 0);
        for (size_t i = 0; i < bins_.size(); i++) bins[static_cast<size_t>(fold(first_ + static_cast<int64_t>(i)) - first)] += bins_[i];
        highest = std::max(std::fabs(lowest_), std::fabs(highest_));
        lowest = 0;
    }
    // Those of a bin stand evenly in it.
    const double rank = percent / 100 * static_cast<double>(count_ - 1);
    double before = 0;
    for (size_t i = 0; i < bins.size(); i++) {
        const auto here = static_cast<double>(bins[i]);
        if (here > 0 && rank <= before + here - 0.5) {
            const double within = std::max(0.0, rank - before + 0.5) / here;
            return std::clamp(std::ldexp(static_cast<double>(first + static_cast<int64_t>(i)) + within, exponent_), lowest, highest);
        }
        before += here;
    }
    return highest;
}

Distribution::Weighted Distribution::weighted() const {
    if (is_exact()) return {kept_, std::vector<float>(kept_.size(), 1)};
    Weighted made;
    for (size_t i = 0; i < bins_.size(); i++) {
        if (!bins_[i]) continue;
        const double middle = std::ldexp(static_cast<double>(first_ + static_cast<int64_t>(i)) + 0.5, exponent_);
        made.values.push_back(static_cast<float>(std::clamp(middle, static_cast<double>(lowest_), static_cast<double>(highest_))));
        made.weights.push_back(static_cast<float>(bins_[i]));
    }
    return made;
}

}  // namespace tessera

#include "algorithms/quantization/scales.h"

#include <algorithm>
#include <cmath>

#include "support/text/error.h"

namespace tessera {

namespace {

constexpr int clip_ratios = 80;
constexpr double least_ratio = 0.2;

struct Range {
    double lowest = 0, highest = 0;
    double limit() const { return std::max(-lowest, highest); }
};

struct Choice {
    float stored = 0, number = 0;
    int zero = 0;
};

class Chooser {
public:
    Chooser(const CodeFormat &format, const ScaleRule &rule) : format_(format), rule_(rule) {}

    void scale_tensor(double limit) {
        if (rule_.scales != DType::f8e4m3fn) return;
        const double most = highest_finite(traits_of(rule_.scales)) * format_.largest();
        tensor_scale_ = std::max(static_cast<float>(limit / most), 0x1p-126f);
    }
    std::optional<float> tensor_scale() const { return tensor_scale_; }

    Range range(const Distribution &d) const {
        if (rule_.fit != Fit::percentile) return {d.lowest(), d.highest()};
        if (rule_.zero_points) return {d.percentile(100 - rule_.percent), d.percentile(rule_.percent)};
        const double limit = d.percentile_of_magnitudes(rule_.percent);
        return {-limit, limit};
    }

    Choice choose(const Distribution &d) const {
        const Range all = range(d);
        const Choice whole = of_range(all);
        if (rule_.fit != Fit::mse || d.count() == 0) return whole;
        const Distribution::Weighted seen = d.weighted();
        Choice best = whole;
        double least = squares(seen, whole);
        float before = whole.stored;
        for (int i = 1; i < clip_ratios && least > 0; i++) {
            const double ratio = 1 - (1 - least_ratio) * i / clip_ratios;
            const Choice choice = of_range({all.lowest * ratio, all.highest * ratio});
            if (choice.stored == before && !rule_.zero_points) continue;  // of narrow scales
            before = choice.stored;
            if (const double sum = squares(seen, choice); sum < least) least = sum, best = choice;
        }
        return best;
    }

private:
    Choice of_range(Range r) const {
        Choice made;
        if (rule_.zero_points) {
            r = {std::min(r.lowest, 0.0), std::max(r.highest, 0.0)};
            made = of_scale((r.highest - r.lowest) / (format_.highest - format_.lowest));
            const double zero = format_.lowest - std::nearbyint(r.lowest / static_cast<double>(made.number));
            made.zero = static_cast<int>(std::clamp(zero, static_cast<double>(format_.lowest), static_cast<double>(format_.highest)));
            return made;
        }
        return of_scale(r.limit() / format_.largest());
    }

    // Rounded to f32 and then up, as quantize of build/quantized.h does.
    Choice of_scale(double scale) const {
        const float wanted = std::max(static_cast<float>(scale), 0x1p-126f);
        if (rule_.scales == DType::f32) return {wanted, wanted, 0};
        const double unit = tensor_scale_ ? static_cast<double>(*tensor_scale_) : 1;
        const DTypeTraits &traits = traits_of(rule_.scales);
        const Scalar real = Scalar::of_real(DType::f32, static_cast<double>(wanted) / unit);
        float stored = static_cast<float>(convert(rule_.scales, Rounding::up, true, real).real);
        if (traits.has_zero && !(stored > 0)) stored = static_cast<float>(decoded(traits, 1));
        return {stored, tensor_scale_ ? stored * *tensor_scale_ : stored, 0};
    }

    double squares(const Distribution::Weighted &seen, const Choice &c) const {
        double sum = 0;
        for (size_t i = 0; i < seen.values.size(); i++) {
            const float made = c.number * format_.nearest(seen.values[i] / c.number, c.zero);
            const double error = static_cast<double>(seen.values[i]) - static_cast<double>(made);
            sum += static_cast<double>(seen.weights[i]) * error * error;
        }
        return sum;
    }

    const CodeFormat &format_;
    const ScaleRule &rule_;
    std::optional<float> tensor_scale_;
};

void check(const CodeFormat &format, const ScaleRule &rule) {
    const auto refuse = [](const std::string &why) { throw UserError("quantization.rule", why); };
    if (rule.zero_points && !format.is_integer)
        refuse("zero points are for integer codes, and " + format.name + " is a float. Leave them out.");
    if (!rule.zero_points && format.is_integer && format.lowest == 0)
        refuse("codes of " + format.name + " have no sign, so they need zero points. Ask for those, or take int8.");
    constexpr DType known[] = {DType::f32, DType::f16, DType::bf16, DType::f8e8m0fnu, DType::f8e4m3fn};
    if (std::find(std::begin(known), std::end(known), rule.scales) == std::end(known))
        refuse(std::string("scales are f32, f16, bf16, f8e8m0fnu or f8e4m3fn; got ") + name_of(rule.scales) + ".");
    if (!(rule.percent >= 50 && rule.percent <= 100))
        refuse("expected a percentile from 50 to 100, got " + std::to_string(rule.percent) + ".");
}

}  // namespace

Scales choose_scales(const Observer &observer, const CodeFormat &format, const ScaleRule &rule) {
    check(format, rule);
    Chooser chooser(format, rule);
    const std::vector<Distribution> &seen = observer.distributions();
    double limit = 0;
    if (rule.scales == DType::f8e4m3fn)
        for (const Distribution &d : seen) limit = std::max(limit, chooser.range(d).limit());
    chooser.scale_tensor(limit);
    Scales made;
    made.type = rule.scales, made.tensor_scale = chooser.tensor_scale();
    for (const Distribution &d : seen) {
        const Choice choice = chooser.choose(d);
        made.scales.push_back(choice.stored);
        if (rule.zero_points) made.zeros.push_back(choice.zero);
    }
    return made;
}

}  // namespace tessera

#include "algorithms/quantization/scales.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

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

    // So that the largest scale of these is the largest number of its type.
    void scale_tensor(const std::vector<Distribution> &seen) {
        if (rule_.scales != DType::f8e4m3fn) return;
        double most = 0;
        for (const Distribution &d : seen) most = std::max(most, span(range(d)));
        tensor_scale_ = std::max(static_cast<float>(most / (highest_finite(traits_of(rule_.scales)) * steps())), 0x1p-126f);
    }
    std::optional<float> tensor_scale() const { return tensor_scale_; }

    // With zero points 0 lies in it.
    Range range(const Distribution &d) const {
        const bool is_cut = rule_.fit == Fit::percentile;
        if (rule_.zero_points)
            return {std::min(is_cut ? d.percentile(100 - rule_.percent) : d.lowest(), 0.0),
                    std::max(is_cut ? d.percentile(rule_.percent) : d.highest(), 0.0)};
        if (!is_cut) return {d.lowest(), d.highest()};
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
    // A scale is a range's span by the steps of its codes.
    double span(const Range &r) const { return rule_.zero_points ? r.highest - r.lowest : r.limit(); }
    double steps() const { return rule_.zero_points ? format_.highest - format_.lowest : format_.largest(); }

    Choice of_range(const Range &r) const {
        Choice made = of_span(span(r));
        for (place_zero(made, r); !is_finite(made, r); place_zero(made, r)) made = below(made);
        return made;
    }

    void place_zero(Choice &made, const Range &r) const {
        if (!rule_.zero_points) return;
        const double zero = format_.lowest - std::nearbyint(r.lowest / static_cast<double>(made.number));
        made.zero = static_cast<int>(std::clamp(zero, static_cast<double>(format_.lowest), static_cast<double>(format_.highest)));
    }

    // Whether the codes of both ends stand for numbers.
    bool is_finite(const Choice &c, const Range &r) const {
        const auto at = [&](double end) { return c.number * format_.nearest(static_cast<float>(end) / c.number, c.zero); };
        return std::isfinite(at(r.lowest)) && std::isfinite(at(r.highest));
    }

    float in_f32(float stored) const { return tensor_scale_ ? stored * *tensor_scale_ : stored; }

    float rounded(Rounding rounding, double scale) const {
        return static_cast<float>(convert(rule_.scales, rounding, true, Scalar::of_real(DType::f32, scale)).real);
    }

    Choice below(const Choice &c) const {
        const float stored = rounded(Rounding::down, static_cast<double>(std::nextafter(c.stored, 0.0f)));
        return {stored, in_f32(stored), 0};
    }

    // Rounded to f32 and then up, as quantize of build/quantized.h does.
    Choice of_span(double span) const {
        const float wanted = std::max(static_cast<float>(span / steps()), 0x1p-126f);
        if (rule_.scales == DType::f32) return {wanted, wanted, 0};
        const double unit = tensor_scale_ ? static_cast<double>(*tensor_scale_) : 1;
        const DTypeTraits &traits = traits_of(rule_.scales);
        const double real = static_cast<double>(static_cast<float>(static_cast<double>(wanted) / unit));
        if (!tensor_scale_ && real > highest_finite(traits))
            throw UserError("quantization.rule",
                            fmt::format("a range of {:g} needs a scale of {:g} for codes of {}, and {} ends at {:g}. Take scales of "
                                        "another type.",
                                        span, real, format_.name, traits.name, highest_finite(traits)));
        float stored = rounded(Rounding::up, real);
        if (traits.has_zero && !(stored > 0)) stored = static_cast<float>(decoded(traits, 1));
        return {stored, in_f32(stored), 0};
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
    chooser.scale_tensor(seen);
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

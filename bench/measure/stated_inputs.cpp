#include "bench/measure/stated_inputs.h"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "bench/measure/random_elements.h"
#include "support/text/error.h"

namespace tessera {

std::string shape_text(const std::vector<int64_t> &shape) {
    std::vector<std::string> parts;
    for (int64_t extent : shape) parts.push_back(std::to_string(extent));
    return "[" + (parts.empty() ? "" : join(parts)) + "]";
}

namespace {

// The types of inputs, states and parameters as callers see them.
std::map<std::string, DType> given_types(const Algorithm &a) {
    std::map<std::string, DType> types;
    for (const Tensor &t : a.tensors) {
        const auto half = a.half_bytes.find(t.name);
        if (t.role != Role::constant) types[t.name] = half == a.half_bytes.end() ? t.dtype : half->second.dtype;
    }
    for (const Parameter &p : a.parameters) types[p.name] = p.dtype;
    return types;
}

std::optional<double> number_of(const std::string &text) {
    char *end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end || !std::isfinite(value)) return {};
    return value;
}

std::optional<NumberRange> range_of(const std::string &text) {
    const size_t dots = text.find(".."), at = dots == std::string::npos ? text.find(',') : dots;
    if (at == std::string::npos) return {};
    const auto lo = number_of(text.substr(0, at)), hi = number_of(text.substr(at + (dots == std::string::npos ? 1 : 2)));
    if (!lo || !hi || *lo > *hi) return {};
    return NumberRange{*lo, *hi};
}

}  // namespace

StatedInputs stated_ranges(const Algorithm &algorithm, const std::vector<std::string> &words) {
    StatedInputs stated;
    const std::map<std::string, DType> types = given_types(algorithm);
    std::vector<std::string> names;
    for (const auto &[name, type] : types) names.push_back(name);
    for (const std::string &word : words) {
        const auto fail = [&](const std::string &why) { throw UserError("command.range", "--range " + word + ": " + why); };
        const size_t equals = word.find('=');
        const auto range = range_of(equals == std::string::npos ? word : word.substr(equals + 1));
        if (!range)
            fail(
                "expected NAME=LOWEST..HIGHEST, or LOWEST..HIGHEST for all others of floats, two finite numbers of which the first is not "
                "above the second.");
        const std::string name = word.substr(0, equals);
        if (equals == std::string::npos ? stated.others.has_value() : stated.ranges.count(name) > 0)
            fail("expected one range for each, got a second one.");
        if (equals == std::string::npos) {
            stated.others = range;
            continue;
        }
        const auto type = types.find(name);
        if (type == types.end())
            fail(algorithm.name + " has no input or parameter '" + name + "'; it has " + join(names) + "." + did_you_mean(name, names));
        const DTypeTraits &traits = traits_of(type->second);
        const double highest = is_float(type->second) ? highest_finite(traits) : static_cast<double>(traits.highest);
        const double lowest = is_float(type->second) ? -highest_finite(traits) : static_cast<double>(traits.lowest);
        if (range->lo < lowest || range->hi > highest)
            fail(fmt::format("'{}' of {} is of {}, which goes from {} to {}.", name, algorithm.name, name_of(type->second), lowest,
                             highest));
        if (!is_float(type->second) && std::floor(range->hi) < std::ceil(range->lo))
            fail("'" + name + "' is of " + name_of(type->second) + ", and no integer is in it.");
        stated.ranges[name] = *range;
    }
    return stated;
}

const NumberRange *StatedInputs::range_of(const std::string &name, DType type) const {
    if (const auto it = ranges.find(name); it != ranges.end()) return &it->second;
    return others && is_float(type) ? &*others : nullptr;
}

Extents extents_in(const StatedInputs &stated, const Algorithm &algorithm) {
    Extents extents;
    for (const auto &[name, array] : stated.arrays) {
        const Tensor *tensor = algorithm.find_tensor(name);
        require(tensor, "stated arrays are of tensors");
        const auto half = algorithm.half_bytes.find(name);
        const std::vector<std::string> &dims = half == algorithm.half_bytes.end() ? tensor->dims : half->second.dims;
        const std::string subject = "--inputs: '" + name + "' has shape " + shape_text(array.extents);
        if (array.extents.size() != dims.size())
            throw UserError("command.inputs",
                            subject + "; expected rank " + std::to_string(dims.size()) + ", of the dims " + join(dims) + ".");
        for (size_t i = 0; i < dims.size(); i++) {
            const Dim &dim = algorithm.dim(dims[i]);
            if (dim.kind == DimKind::fixed && dim.value != array.extents[i])
                throw UserError("command.inputs",
                                subject + "; expected " + std::to_string(dim.value) + " along '" + dim.name + "', which is fixed.");
            if (dim.kind != DimKind::symbolic) continue;
            const auto [told, is_new] = extents.emplace(dim.equals.empty() ? dim.name : dim.equals, array.extents[i]);
            if (told->second != array.extents[i])
                throw UserError("command.inputs", subject + "; expected " + std::to_string(told->second) + " along '" + dim.name +
                                                      "', as another array has.");
        }
    }
    return extents;
}

Scalar number_in(const NumberRange &range, DType type, uint64_t seed, uint64_t position) {
    const uint64_t drawn = random_number(seed, position);
    if (is_float(type)) {
        const double value = range.lo + (range.hi - range.lo) * (static_cast<double>(drawn >> 11) / 0x1p53);
        const Scalar rounded = Scalar::of_real(type, value);
        // Rounding may step over an end.
        if (rounded.real >= range.lo && rounded.real <= range.hi) return rounded;
        const Rounding inward = rounded.real < range.lo ? Rounding::up : Rounding::down;
        return convert(type, inward, false, Scalar::of_real(DType::f64, value));
    }
    const DTypeTraits &traits = traits_of(type);
    const auto limited = [&](double end) {
        if (end <= static_cast<double>(traits.lowest)) return traits.lowest;
        return end >= static_cast<double>(traits.highest) ? traits.highest : static_cast<int64_t>(end);
    };
    const int64_t lo = limited(std::ceil(range.lo)), hi = limited(std::floor(range.hi));
    const uint64_t count = hi < lo ? 1 : static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo) + 1;  // 0 stands for 2^64
    return Scalar::of_integer(type, static_cast<int64_t>(static_cast<uint64_t>(lo) + (count ? drawn % count : drawn)));
}

Array array_in(const NumberRange &range, DType type, const std::vector<int64_t> &shape, uint64_t seed) {
    Array array(type, shape);
    for (int64_t i = 0; i < array.size(); i++) array.set(i, number_in(range, type, seed, static_cast<uint64_t>(i)));
    return array;
}

}  // namespace tessera

#include "generators/certify/stability.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include <fmt/format.h>

#include "algorithms/evaluate/reference.h"
#include "algorithms/transform/inline_calls.h"
#include "autotune/measure/sampled.h"
#include "bench/measure/inputs.h"
#include "support/text/error.h"

namespace tessera {

namespace {

std::map<std::string, DType> ranged(const Algorithm &a) {
    std::map<std::string, DType> types;
    for (const Tensor &t : a.tensors)
        if (t.role != Role::constant && is_float(t.dtype)) types[t.name] = t.dtype;
    for (const Parameter &p : a.parameters)
        if (is_float(p.dtype)) types[p.name] = p.dtype;
    return types;
}

std::optional<RealInterval> interval_in(const std::string &text) {
    const char *at = text.c_str();
    char *end = nullptr;
    const double lo = std::strtod(at, &end);
    if (end == at || *end != ',') return {};
    at = end + 1;
    const double hi = std::strtod(at, &end);
    if (end == at || *end || !(lo <= hi) || !std::isfinite(lo) || !std::isfinite(hi)) return {};
    return RealInterval{lo, hi};
}

// Where the elements of all inputs lie in a sample.
constexpr const char *corners[] = {"every input at its highest", "every input at its lowest", "inputs at either end by turns",
                                   "inputs at either end by chance"};

double end_of(const RealInterval &range, size_t corner, int64_t element, RandomNumbers &random) {
    const bool high = corner == 0 || (corner == 2 && element % 2 == 0) || (corner == 3 && random.below(2) == 0);
    return high ? range.hi : range.lo;
}

constexpr double most_tried_steps = 3e7;  // of all samples together: seconds

}  // namespace

std::map<std::string, RealInterval> parse_ranges(const Algorithm &algorithm, const std::vector<std::string> &words) {
    std::map<std::string, RealInterval> ranges;
    std::optional<RealInterval> others;
    const std::map<std::string, DType> types = ranged(algorithm);
    std::vector<std::string> names;
    for (const auto &[name, type] : types) names.push_back(name);
    for (const std::string &word : words) {
        const size_t equals = word.find('=');
        const auto range = interval_in(equals == std::string::npos ? word : word.substr(equals + 1));
        if (!range)
            throw UserError("command.range", "--range " + word +
                                                 ": expected NAME=LOWEST,HIGHEST, or LOWEST,HIGHEST for all others, two finite numbers of "
                                                 "which the first is not above the second.");
        const std::string name = word.substr(0, equals);
        if (equals == std::string::npos ? others.has_value() : ranges.count(name) > 0)
            throw UserError("command.range", "--range " + word + ": expected one range for each, got a second one.");
        if (equals == std::string::npos) others = range;
        else if (std::count(names.begin(), names.end(), name)) ranges[name] = *range;
        else if (algorithm.half_bytes.count(name)) continue;  // every number of four bits is taken to be there
        else
            throw UserError("command.range", "--range " + word + ": " + algorithm.name + " has no input or parameter '" + name +
                                                 "' of floats; it has " + join(names) + "." + did_you_mean(name, names));
    }
    for (const std::string &name : names)
        if (!ranges.count(name)) {
            if (!others)
                throw UserError("command.range", "'" + name + "' of " + algorithm.name + " has no range; give --range " + name +
                                                     "=LOWEST,HIGHEST, or LOWEST,HIGHEST for all others.");
            ranges[name] = *others;
        }
    for (const auto &[name, range] : ranges)
        if (const double highest = highest_finite(traits_of(types.at(name))); range.magnitude() > highest)
            throw UserError("command.range", fmt::format("--range: '{}' of {} is of {}, which ends at {}; got {} to {}.", name,
                                                         algorithm.name, name_of(types.at(name)), highest, range.lo, range.hi));
    return ranges;
}

bool Stability::is_proved() const {
    return std::all_of(stages.begin(), stages.end(), [](const StageRange &s) { return s.trouble.empty() && !s.range.is_lost; });
}

Stability stability_of(const PreparedKernel &p, const Extents &symbolic, const std::map<std::string, RealInterval> &ranges, uint64_t seed) {
    const Extents extents = all_extents(p.request.bound, symbolic);
    for (const Call &call : p.request.bound.calls())
        if (call.repeat)
            throw UserError("verify.repeat", p.request.declared.name + ": --stable follows each stage once, and call '" + call.scope +
                                                 "' repeats; ask for its callee, as an algorithm by itself.");
    const Algorithm whole = inline_calls(p.request.bound);
    Stability result{analyse_ranges(whole, extents, ranges), 0, ""};
    const TileProgram &program = variant_for(p.compiled.kernel, extents).program;
    if (result.is_proved() || std::size(corners) * steps_of(program, extents) > most_tried_steps) return result;
    RandomNumbers random(seed);
    for (size_t corner = 0; corner < std::size(corners) && result.found.empty(); corner++) {
        Inputs inputs = random_inputs(program, extents, seed);
        for (auto &[name, array] : inputs.tensors)
            if (auto range = ranges.find(name); range != ranges.end())
                for (int64_t i = 0; i < array.size(); i++)
                    array.set(i, Scalar::of_real(array.dtype, end_of(range->second, corner, i, random)));
        for (auto &[name, value] : inputs.parameters)
            if (auto range = ranges.find(name); range != ranges.end())
                value = Scalar::of_real(value.type, end_of(range->second, corner, 0, random));
        const auto all = evaluate(whole, inputs.tensors, inputs.parameters, EvaluationOptions{Precision::policy, extents, true});
        result.samples++;
        for (const StageRange &s : result.stages) {
            const Stage *stage = whole.find_stage(s.stage);
            for (const std::string &name : names_of_results(*stage)) {
                const auto array = all.find(name);
                if (array == all.end() || !is_float(array->second.dtype) || !result.found.empty()) continue;
                for (const double v : array->second.values()) {
                    if (std::isfinite(v) ||
                        (v < 0 ? s.range.has_lowest && !s.range.is_lost : v > 0 && s.range.has_highest && !s.range.is_lost))
                        continue;
                    result.found = fmt::format("stage '{}' holds {}, with {}", s.stage, v, corners[corner]);
                    break;
                }
            }
        }
    }
    return result;
}

}  // namespace tessera

#include "generators/certify/stability.h"

#include <algorithm>
#include <cmath>

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

// Where the elements of all inputs lie in a sample.
constexpr const char *corners[] = {"every input at its highest", "every input at its lowest", "inputs at either end by turns",
                                   "inputs at either end by chance"};

double end_of(const RealInterval &range, size_t corner, int64_t element, RandomNumbers &random) {
    const bool high = corner == 0 || (corner == 2 && element % 2 == 0) || (corner == 3 && random.below(2) == 0);
    return high ? range.hi : range.lo;
}

Scalar number(DType type, double value) {
    return is_float(type) ? Scalar::of_real(type, value) : Scalar::of_integer(type, static_cast<int64_t>(value));
}

constexpr double most_tried_steps = 3e7;  // of all samples together: seconds

}  // namespace

std::map<std::string, RealInterval> parse_ranges(const Algorithm &algorithm, const std::vector<std::string> &words) {
    std::map<std::string, RealInterval> ranges;
    const StatedInputs stated = stated_ranges(algorithm, words);
    for (const auto &[name, range] : stated.ranges) ranges[name] = {range.lo, range.hi};
    for (const Parameter &p : algorithm.parameters)
        if (p.range && is_float(p.dtype) && p.range->has_least() && p.range->has_most())
            ranges.emplace(p.name, RealInterval{p.range->least.real, p.range->most.real});
    for (const auto &[name, type] : ranged(algorithm)) {
        if (ranges.count(name)) continue;
        if (!stated.others)
            throw UserError("command.range", "'" + name + "' of " + algorithm.name + " has no range; give --range " + name +
                                                 "=LOWEST..HIGHEST, or LOWEST..HIGHEST for all others.");
        ranges[name] = {stated.others->lo, stated.others->hi};
        if (const double highest = highest_finite(traits_of(type)); ranges[name].magnitude() > highest)
            throw UserError("command.range", fmt::format("--range: '{}' of {} is of {}, which ends at {}; got {} to {}.", name,
                                                         algorithm.name, name_of(type), highest, stated.others->lo, stated.others->hi));
    }
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
    const Algorithm whole = inline_calls(p.request.elements);
    Stability result{analyse_ranges(whole, extents, ranges), 0, ""};
    const TileProgram &program = variant_for(p.compiled.kernel, extents).program;
    if (result.is_proved() || std::size(corners) * steps_of(program, extents) > most_tried_steps) return result;
    RandomNumbers random(seed);
    for (size_t corner = 0; corner < std::size(corners) && result.found.empty(); corner++) {
        Inputs inputs = random_inputs(program, extents, seed);
        for (const auto &[name, half] : p.request.bound.half_bytes)
            if (const auto bytes = inputs.tensors.find(name); bytes != inputs.tensors.end())
                bytes->second = from_bytes(bytes->second, half.dtype, shape_of(*p.request.elements.find_tensor(name), extents));
        for (auto &[name, array] : inputs.tensors)
            if (auto range = ranges.find(name); range != ranges.end())
                for (int64_t i = 0; i < array.size(); i++) array.set(i, number(array.dtype, end_of(range->second, corner, i, random)));
        for (auto &[name, value] : inputs.parameters)
            if (auto range = ranges.find(name); range != ranges.end()) value = number(value.type, end_of(range->second, corner, 0, random));
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

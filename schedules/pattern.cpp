#include "schedules/pattern.h"

#include <algorithm>

namespace tessera {

bool is_pattern(const std::string &name) { return name.find('*') != std::string::npos; }

bool matches(const std::string &pattern, const std::string &name) {
    size_t p = 0, n = 0, star = std::string::npos, after = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') star = p++, after = n;
        else if (p < pattern.size() && pattern[p] == name[n]) p++, n++;
        else if (star == std::string::npos) return false;
        else p = star + 1, n = ++after;  // the last star takes one more
    }
    return pattern.find_first_not_of('*', p) == std::string::npos;
}

namespace {

using Stages = std::map<std::string, Knobs>;

// The dims of `dims` that a knob's address stands for.
std::vector<std::string> meant(const std::string &address, const std::vector<std::string> &dims) {
    if (!is_pattern(address)) return {address};
    std::vector<std::string> found;
    std::copy_if(dims.begin(), dims.end(), std::back_inserter(found), [&](const std::string &d) { return matches(address, d); });
    return found;
}

template <typename Value>
void write_out(std::map<std::string, Value> &knob, const std::vector<std::string> &dims) {
    std::map<std::string, Value> result;
    for (const bool own : {false, true})  // a dim's own name is over a pattern
        for (const auto &[address, value] : knob)
            if (is_pattern(address) != own)
                for (const std::string &d : meant(address, dims)) result[d] = value;
    knob = result;
}

void write_out(std::vector<std::string> &loops, const std::vector<std::string> &dims) {
    std::vector<std::string> result;
    for (const std::string &loop : loops) {
        // A level before the pattern of a dim stays: "micro.fft.k*".
        std::vector<std::string> found = meant(loop, dims);
        const size_t dot = loop.find('.');
        if (found.empty() && dot != std::string::npos)
            for (const std::string &d : meant(loop.substr(dot + 1), dims)) found.push_back(loop.substr(0, dot + 1) + d);
        result.insert(result.end(), found.begin(), found.end());
    }
    loops = result;
}

Knobs for_dims(Knobs k, const std::vector<std::string> &dims) {
    for (Extents *extents : {&k.block, &k.k, &k.micro, &k.vector, &k.unroll}) write_out(*extents, dims);
    for (auto &[level, extents] : k.levels) write_out(extents, dims);
    write_out(k.tail, dims), write_out(k.split, dims);
    write_out(k.loops, dims), write_out(k.parallel, dims);
    std::vector<LayoutAxis> layout;
    for (const LayoutAxis &axis : k.layout)
        for (const std::string &d : meant(axis.dim, dims)) layout.push_back({d, axis.factor, axis.remainder});
    k.layout = layout;
    return k;
}

template <typename Value>
void lay(std::map<std::string, Value> &below, const std::map<std::string, Value> &over) {
    for (const auto &[key, value] : over) below[key] = value;
}

template <typename Value>
void lay(std::optional<Value> &below, const std::optional<Value> &over) {
    if (over) below = over;
}

template <typename Value>
void lay(std::vector<Value> &below, const std::vector<Value> &over) {
    if (!over.empty()) below = over;
}

void lay(Knobs &below, const Knobs &over) {
    // By name, so that a knob that is added to Knobs is missed by the compiler.
    const auto &[place, block, k, micro, levels, loops, vector, unroll, parallel, pack, prefetch, layout, tail, split, instruction, call, warps,
                 stages, swizzle, directives] = over;
    for (const auto &[level, extents] : levels) lay(below.levels[level], extents);
    lay(below.place, place), lay(below.block, block), lay(below.k, k), lay(below.micro, micro), lay(below.loops, loops);
    lay(below.vector, vector), lay(below.unroll, unroll), lay(below.parallel, parallel), lay(below.pack, pack);
    lay(below.prefetch, prefetch), lay(below.layout, layout), lay(below.tail, tail), lay(below.split, split);
    lay(below.instruction, instruction), lay(below.call, call), lay(below.warps, warps), lay(below.stages, stages);
    lay(below.swizzle, swizzle), lay(below.directives, directives);
}

Stages written_out(const Stages &stages, const Algorithm &inlined) {
    std::vector<std::pair<std::string, Knobs>> patterns;
    Stages result;
    for (const auto &[name, knobs] : stages)
        if (is_pattern(name)) patterns.emplace_back(name, knobs);
        else result[name] = knobs;
    std::stable_sort(patterns.begin(), patterns.end(), [](const auto &a, const auto &b) { return a.first.size() < b.first.size(); });
    for (const Stage &stage : inlined.stages) {
        std::vector<std::string> dims = stage.dims;
        for (const std::string &d : reduced_dims(stage)) dims.push_back(d);
        std::optional<Knobs> knobs;
        auto take = [&](const Knobs &over) {
            if (!knobs) knobs = for_dims(over, dims);
            else lay(*knobs, for_dims(over, dims));
        };
        for (const auto &[pattern, own] : patterns)
            if (matches(pattern, stage.name)) take(own);
        if (auto it = result.find(stage.name); it != result.end()) take(it->second);
        if (knobs) result[stage.name] = *knobs;
    }
    return result;
}

}  // namespace

ResolvedSchedule without_patterns(const ResolvedSchedule &schedule, const Algorithm &declared) {
    const Algorithm inlined = inline_calls(declared);
    ResolvedSchedule result = schedule;
    result.stages = written_out(schedule.stages, inlined);
    for (Variant &variant : result.variants) variant.stages = written_out(variant.stages, inlined);
    return result;
}

}  // namespace tessera

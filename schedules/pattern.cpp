#include "schedules/pattern.h"

#include <algorithm>

namespace tessera {

bool is_pattern(const std::string &name) { return name.find('*') != std::string::npos; }

bool matches(const std::string &pattern, const std::string &name) {
    const size_t star = pattern.find('*');
    if (star == std::string::npos) return pattern == name;
    if (name.compare(0, star, pattern, 0, star) != 0) return false;
    const std::string rest = pattern.substr(star + 1);
    for (size_t i = star; i <= name.size(); i++)
        if (matches(rest, name.substr(i))) return true;
    return false;
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
    lay(below.place, over.place), lay(below.block, over.block), lay(below.k, over.k), lay(below.micro, over.micro);
    for (const auto &[level, extents] : over.levels) lay(below.levels[level], extents);
    lay(below.loops, over.loops), lay(below.vector, over.vector), lay(below.unroll, over.unroll), lay(below.parallel, over.parallel);
    lay(below.pack, over.pack), lay(below.layout, over.layout), lay(below.tail, over.tail), lay(below.split, over.split);
    lay(below.instruction, over.instruction), lay(below.call, over.call), lay(below.warps, over.warps), lay(below.stages, over.stages);
    lay(below.swizzle, over.swizzle), lay(below.directives, over.directives);
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
        Knobs knobs;
        bool stated = false;
        for (const auto &[pattern, own] : patterns)
            if (matches(pattern, stage.name)) lay(knobs, for_dims(own, dims)), stated = true;
        if (auto it = result.find(stage.name); it != result.end()) lay(knobs, for_dims(it->second, dims)), stated = true;
        if (stated) result[stage.name] = knobs;
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

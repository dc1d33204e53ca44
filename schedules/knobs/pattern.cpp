#include "schedules/knobs/pattern.h"

#include <algorithm>
#include <set>

#include "algorithms/transform/inline_calls.h"
#include "schedules/knobs/knob.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

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

using Stages = KnobsByStage;

// The dims of `dims` that a knob's address stands for.
std::vector<std::string> meant(const std::string &address, const std::vector<std::string> &dims) {
    if (!is_pattern(address)) return {address};
    std::vector<std::string> found;
    std::copy_if(dims.begin(), dims.end(), std::back_inserter(found), [&](const std::string &d) { return matches(address, d); });
    return found;
}

[[noreturn]] void refuse_equal(const std::string &where, const std::string &one, const std::string &other, const std::string &knob) {
    throw UserError("schedule.pattern", where + ": expected one address to be over the other; '" + one + "' and '" + other +
                                            "' are of one length, both match, and disagree on " + knob +
                                            ". Make one longer, state the name itself, or delete one (null).");
}

bool shorter(const std::string &a, const std::string &b) { return a.size() < b.size(); }

// Patterns are in what names a dim; each kind of field says where that is.
template <ByDim Value>
void write_out(std::map<std::string, Value> &knob, const std::vector<std::string> &dims, const std::string &name,
               const std::string &where) {
    std::vector<std::string> patterns;
    for (const auto &[address, value] : knob)
        if (is_pattern(address)) patterns.push_back(address);
    if (patterns.empty()) return;
    std::stable_sort(patterns.begin(), patterns.end(), shorter);
    std::map<std::string, Value> result;
    for (const std::string &d : dims) {
        std::string taken;
        for (const std::string &p : patterns) {
            if (!matches(p, d)) continue;
            if (taken.size() == p.size() && knob.at(taken) != knob.at(p)) refuse_equal(where + ", dim '" + d + "'", taken, p, name);
            taken = p;
        }
        if (!taken.empty()) result[d] = knob.at(taken);
    }
    for (const auto &[address, value] : knob)
        if (!is_pattern(address)) result[address] = value;
    knob = result;
}

void write_out(std::vector<std::string> &loops, const std::vector<std::string> &dims) {
    std::vector<std::string> result;
    for (const std::string &loop : loops) {
        // A level before the pattern of a dim stays: "micro.fft.k*".
        const LoopName name = parse_loop(loop, [&](const std::string &d) { return !meant(d, dims).empty(); });
        if (!name.dim.empty())
            for (const std::string &d : meant(name.dim, dims)) result.push_back(LoopName{name.level, d}.text());
    }
    loops = result;
}

void write_out(std::map<std::string, Extents> &levels, const std::vector<std::string> &dims, const std::string &,
               const std::string &where) {
    for (auto &[level, extents] : levels) write_out(extents, dims, level, where);
}

void write_out(std::vector<std::string> &loops, const std::vector<std::string> &dims, const std::string &, const std::string &) {
    write_out(loops, dims);
}

void write_out(std::vector<LayoutAxis> &layout, const std::vector<std::string> &dims, const std::string &, const std::string &) {
    std::vector<LayoutAxis> result;
    for (const LayoutAxis &axis : layout)
        for (const std::string &d : meant(axis.dim, dims)) result.push_back({d, axis.factor, axis.remainder, axis.within});
    layout = result;
}

// Places, directives and operands are named in full.
template <typename Field>
concept Unpatterned = std::same_as<Field, std::optional<Place>> || std::same_as<Field, std::map<std::string, Pack>> ||
    std::same_as<Field, std::map<std::string, PrefetchRule>> || std::same_as<Field, std::optional<std::string>> ||
    std::same_as<Field, std::optional<int64_t>> || std::same_as<Field, std::vector<Directive>>;

template <Unpatterned Field>
void write_out(Field &, const std::vector<std::string> &, const std::string &, const std::string &) {}

Knobs for_dims(Knobs k, const std::vector<std::string> &dims, const std::string &where) {
    for_each_knob(k, [&](Knob knob, auto &field) { write_out(field, dims, name_of(knob), where); });
    return k;
}

template <typename Value>
void lay(std::map<std::string, Value> &below, const std::map<std::string, Value> &over) {
    for (const auto &[key, value] : over) below[key] = value;
}

void lay(std::map<std::string, Extents> &below, const std::map<std::string, Extents> &over) {
    for (const auto &[level, extents] : over) lay(below[level], extents);
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
    for_each_knob(below, over, [](Knob, auto &under, const auto &own) { lay(under, own); });
}

// The first knob that two sets differ in, which is there.
std::string difference(const Knobs &a, const Knobs &b) {
    std::optional<Knob> first;
    for_each_knob(a, b, [&](Knob knob, const auto &of_a, const auto &of_b) {
        if (!first && of_a != of_b) first = knob;
    });
    require(first.has_value(), "the two differ");
    return name_of(*first);
}

std::vector<std::string> dims_of(const Stage &stage) {
    std::vector<std::string> dims = stage.dims;
    for (const std::string &d : reduced_dims(stage)) dims.push_back(d);
    return dims;
}

Stages written_out(const Stages &stages, const Algorithm &inlined, const std::string &schedule) {
    std::vector<std::pair<std::string, Knobs>> patterns;
    Stages result;
    for (const auto &[name, knobs] : stages)
        if (is_pattern(name)) patterns.emplace_back(name, knobs);
        else result[name] = knobs;
    std::stable_sort(patterns.begin(), patterns.end(), [](const auto &a, const auto &b) { return shorter(a.first, b.first); });
    for (const Stage &stage : inlined.stages()) {
        const std::string where = "schedule '" + schedule + "': stage '" + stage.name + "'";
        const std::vector<std::string> dims = dims_of(stage);
        std::vector<std::pair<std::string, Knobs>> taken;
        for (const auto &[pattern, own] : patterns)
            if (matches(pattern, stage.name)) taken.emplace_back(pattern, for_dims(own, dims, where));
        for (size_t i = 0; i < taken.size(); i++)
            for (size_t j = i + 1; j < taken.size() && taken[j].first.size() == taken[i].first.size(); j++) {
                Knobs one = taken[i].second, other = taken[j].second;
                lay(one, taken[j].second), lay(other, taken[i].second);
                if (one != other) refuse_equal(where, taken[i].first, taken[j].first, difference(one, other));
            }
        if (auto it = result.find(stage.name); it != result.end()) taken.emplace_back(stage.name, for_dims(it->second, dims, where));
        for (size_t i = 1; i < taken.size(); i++) lay(taken[0].second, taken[i].second);
        if (!taken.empty()) result[stage.name] = taken[0].second;
    }
    return result;
}

// Addresses of dims, with the knob or the level that has them.
using Addresses = std::set<std::pair<std::string, std::string>>;

template <ByDim Value>
void take_addresses(Addresses &all, const std::string &knob, const std::map<std::string, Value> &by_dim) {
    for (const auto &[dim, value] : by_dim) all.emplace(knob, dim);
}

void take_addresses(Addresses &all, const std::string &, const std::map<std::string, Extents> &levels) {
    for (const auto &[level, extents] : levels) take_addresses(all, level, extents);
}

void take_addresses(Addresses &all, const std::string &knob, const std::vector<std::string> &loops) {
    for (const std::string &loop : loops) all.emplace(knob, loop);
}

void take_addresses(Addresses &all, const std::string &knob, const std::vector<LayoutAxis> &layout) {
    for (const LayoutAxis &axis : layout) all.emplace(knob, axis.dim);
}

template <Unpatterned Field>
void take_addresses(Addresses &, const std::string &, const Field &) {}

Addresses addresses(const Knobs &k) {
    Addresses all;
    for_each_knob(k, [&](Knob knob, const auto &field) { take_addresses(all, name_of(knob), field); });
    return all;
}

void find_idle(const Stages &stages, const Algorithm &inlined, std::set<std::string> &idle) {
    for (const auto &[name, knobs] : stages) {
        std::vector<std::string> names, dims;
        bool matched = false;
        for (const Stage &stage : inlined.stages()) {
            names.push_back(stage.name);
            if (!matches(name, stage.name)) continue;
            matched = true;
            for (const std::string &d : dims_of(stage))
                if (std::find(dims.begin(), dims.end(), d) == dims.end()) dims.push_back(d);
        }
        if (!matched) {
            if (is_pattern(name)) idle.insert("'" + name + "' matches no stage of " + inlined.name + "; its stages are " + join(names));
            continue;
        }
        for (const auto &[knob, address] : addresses(knobs)) {
            std::vector<std::string> found = {address};
            if (is_pattern(address)) write_out(found, dims);
            if (found.empty())
                idle.insert("'" + address + "' in " + knob + " of '" + name + "' matches no dim there; the dims are " + join(dims));
        }
    }
}

}  // namespace

ResolvedSchedule without_patterns(const ResolvedSchedule &schedule, const Algorithm &declared) {
    const Algorithm inlined = inline_calls(declared);
    ResolvedSchedule result = schedule;
    result.stages = written_out(schedule.stages, inlined, schedule.name);
    for (Variant &variant : result.variants) variant.stages = written_out(variant.stages, inlined, schedule.name);
    return result;
}

std::vector<std::string> idle_patterns(const ResolvedSchedule &schedule, const Algorithm &declared) {
    const Algorithm inlined = inline_calls(declared);
    std::set<std::string> idle;
    find_idle(schedule.stages, inlined, idle);
    for (const Variant &variant : schedule.variants) find_idle(variant.stages, inlined, idle);
    return {idle.begin(), idle.end()};
}

}  // namespace tessera

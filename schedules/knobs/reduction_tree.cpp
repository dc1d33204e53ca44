#include "schedules/knobs/reduction_tree.h"

#include <algorithm>

#include "algorithms/transform/inline_calls.h"
#include "schedules/knobs/notation.h"
#include "support/text/error.h"

namespace tessera {

namespace {

using Levels = std::vector<int64_t>;

// The name that a split gives the n-th stage of a chain of splits, counted from 0.
std::string partial_name(const std::string &stage, size_t n) { return stage + ".partial" + (n ? std::to_string(n + 1) : ""); }

// "N", "N.i", "N.i.i": what the n-th split is of.
std::string split_dim(std::string dim, size_t n) {
    for (; n > 0; n--) dim += ".i";
    return dim;
}

// The lanes that a level of so many results runs in where vectors have `vector`; 0 for none.
int64_t lanes_of(int64_t results, int64_t vector) {
    int64_t lanes = vector;
    while (lanes > 1 && (lanes > results || results % lanes != 0)) lanes /= 2;
    constexpr int64_t fewest = 4;
    return lanes < std::min(vector, fewest) ? 0 : lanes;
}

// The dims of a stage, or of the declared one that a split makes it of.
std::vector<std::string> own_dims(const std::string &stage, const Algorithm &inlined) {
    const Stage *nearest = nullptr;
    for (const Stage &s : inlined.stages())
        if ((stage == s.name || stage.starts_with(s.name + ".")) && (!nearest || nearest->name.size() < s.name.size())) nearest = &s;
    return nearest ? nearest->dims : std::vector<std::string>{};
}

// Where the partial results of a stage are computed.
Place place_of_partials(const std::string &stage, const Knobs &k, const Algorithm &inlined) {
    if (k.place && k.place->kind == Place::Kind::at) return *k.place;
    const std::vector<std::string> dims = own_dims(stage, inlined);
    auto is_own = [&](const std::string &dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); };
    std::string innermost = dims.empty() ? "" : dims.back();
    for (const std::string &loop : k.loops)
        if (is_own(parse_loop(loop, is_own).dim)) innermost = loop;
    return innermost.empty() ? Place{} : Place{Place::Kind::at, stage, innermost};
}

// What the schedule states is over what the tree says.
void say(Extents &knob, const std::string &dim, int64_t value) { knob.emplace(dim, value); }

void write_out(const std::string &stage, const std::string &dim, const Levels &levels, const Algorithm &inlined, KnobsByStage &stages) {
    Knobs &k = stages[stage];
    if (const Stage *scattered = inlined.find_stage(stage); scattered && scatters(*scattered))
        throw UserError("schedule.split", stage + ": a fold to a computed destination has no tree of lanes along '" + dim +
                                              "'; give it a copy of the result for each of so many lanes, chunks or threads.");
    const Place place = place_of_partials(stage, k, inlined);
    auto stated = k.vector.find(dim);
    const int64_t vector = stated == k.vector.end() ? 0 : stated->second;
    k.vector.erase(dim);
    k.split.erase(dim);
    for (size_t n = 0; n < levels.size(); n++) {
        const std::string of = split_dim(dim, n), lane = of + ".i";
        k.split[of] = {Split::How::lanes, levels[n]};
        Knobs &partial = stages[partial_name(stage, n)];
        if (!partial.place) partial.place = place;
        if (vector == 0) continue;
        say(partial.micro, lane, levels[n]);
        if (const int64_t lanes = lanes_of(levels[n], vector)) say(partial.vector, lane, lanes);
        if (n > 0) say(partial.unroll, of + ".o", levels[n - 1] / levels[n]);
    }
    if (vector > 0) say(k.unroll, split_dim(dim, levels.size()), levels.back());
}

// The lanes of the splits of `dim` inside each other; none where they are no tree.
Levels levels_in(const Knobs &k, const std::string &dim) {
    Levels levels;
    for (auto split = k.split.find(dim); split != k.split.end(); split = k.split.find(split_dim(dim, levels.size()))) {
        const auto &[how, size, tree] = split->second;
        if (how != Split::How::lanes || size < 2) return {};
        if (!levels.empty() && (levels.back() <= size || levels.back() % size != 0)) return {};
        levels.push_back(size);
    }
    return levels;
}

void take_away(Extents &knob, const Extents &said) {
    for (const auto &[dim, value] : said)
        if (auto own = knob.find(dim); own != knob.end() && own->second == value) knob.erase(own);
}

// The stages with the splits of one dim of one stage as a tree.
KnobsByStage contracted(KnobsByStage stages, const std::string &stage, const std::string &dim, const Levels &levels,
                        const Algorithm &inlined) {
    Knobs &k = stages.at(stage);
    for (size_t n = 0; n < levels.size(); n++) k.split.erase(split_dim(dim, n));
    k.split[dim] = {Split::How::tree, 0, levels};
    const Extents &lanes = stages[partial_name(stage, 0)].vector;
    if (auto first = lanes.find(dim + ".i"); first != lanes.end()) k.vector[dim] = first->second;
    Knobs alone;
    alone.place = k.place, alone.loops = k.loops, alone.split = {{dim, k.split[dim]}};
    if (k.vector.count(dim)) alone.vector = {{dim, k.vector[dim]}};
    for (const auto &[name, said] : without_trees({{stage, alone}}, inlined)) {
        Knobs &own = stages[name];
        if (name != stage && own.place == said.place) own.place.reset();
        take_away(own.micro, said.micro), take_away(own.unroll, said.unroll);
        if (name != stage) take_away(own.vector, said.vector);
        if (own == Knobs{}) stages.erase(name);
    }
    return stages;
}

}  // namespace

KnobsByStage without_trees(const KnobsByStage &stages, const Algorithm &inlined) {
    KnobsByStage result = stages;
    for (const auto &[stage, knobs] : stages)
        for (const auto &[dim, split] : knobs.split)
            if (split.how == Split::How::tree) write_out(stage, dim, split.levels, inlined, result);
    return result;
}

ResolvedSchedule without_trees(const ResolvedSchedule &schedule, const Algorithm &declared) {
    const Algorithm inlined = inline_calls(declared);
    ResolvedSchedule result = schedule;
    result.stages = without_trees(schedule.stages, inlined);
    for (Variant &variant : result.variants) variant.stages = without_trees(variant.stages, inlined);
    return result;
}

KnobsByStage with_trees(const KnobsByStage &stages, const Algorithm &inlined) {
    KnobsByStage result = stages;
    for (const auto &[stage, knobs] : stages)
        for (const auto &[dim, split] : knobs.split) {
            if (dim.ends_with(".i") && knobs.split.count(dim.substr(0, dim.size() - 2))) continue;  // a level of that one's tree
            const Levels levels = levels_in(knobs, dim);
            if (levels.empty()) continue;
            const KnobsByStage shorter = contracted(result, stage, dim, levels, inlined);
            if (without_trees(shorter, inlined) == without_trees(result, inlined)) result = shorter;
        }
    return result;
}

}  // namespace tessera

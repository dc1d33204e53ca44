#include "compiler/lower/context/stage_nest.h"

#include <algorithm>

namespace tessera {

static std::optional<int64_t> find_extent(const Extents &extents, const std::string &dim) {
    auto it = extents.find(dim);
    return it == extents.end() ? std::nullopt : std::optional(it->second);
}

std::optional<int64_t> tile_of(const Knobs &k, const LoopName &loop) {
    if (loop.level == "block") return find_extent(k.block, loop.dim);
    if (loop.level == "k") return find_extent(k.k, loop.dim);
    if (loop.level == "micro") return find_extent(k.micro, loop.dim);
    auto level = k.levels.find(loop.level);
    return level == k.levels.end() ? std::nullopt : find_extent(level->second, loop.dim);
}

bool names_loop(const Place &place, const StageNest &nest, size_t position) {
    const LoopName &loop = nest.loops[position];
    if (place.kind != Place::Kind::at || place.stage != nest.stage->name) return false;
    if (place.loop == loop.text()) return true;
    if (place.loop != loop.level) return false;
    for (size_t i = position + 1; i < nest.loops.size(); i++)
        if (nest.loops[i].level == place.loop) return false;
    return true;
}

static bool is_tiled(const Knobs &k, const std::string &dim) {
    return k.block.count(dim) || k.k.count(dim) || k.micro.count(dim) ||
           std::any_of(k.levels.begin(), k.levels.end(), [&](const auto &level) { return level.second.count(dim) > 0; });
}

// The loops over tiles where the schedule lists no loops, and before them those over what is not tiled.
static std::vector<LoopName> default_loops(const Lowering &lowering, const Stage &stage, const Knobs &k) {
    const std::vector<std::string> folded = reduced_dims(stage);
    const std::string scanned = scanned_dim(stage);
    std::vector<LoopName> loops;
    auto level = [&](const std::string &name, const Extents &extents, const std::vector<std::string> &dims) {
        if (!lowering.mapping->is_loop(name)) return;
        for (const std::string &d : dims)
            if (extents.count(d) && d != scanned) loops.push_back({name, d});
    };
    if (!k.block.empty() || !k.micro.empty())
        for (const std::string &d : stage.dims)
            if (!is_tiled(k, d) && !k.vector.count(d) && d != scanned) loops.push_back({"", d});
    level("block", k.block, stage.dims);
    level("k", k.k, folded);
    for (auto &[name, extents] : k.levels) level(name, extents, stage.dims), level(name, extents, folded);
    level("micro", k.micro, stage.dims);
    return loops;
}

static std::vector<LoopName> loops_of(const Lowering &lowering, const Stage &stage, const Knobs &k) {
    const std::vector<std::string> folded = reduced_dims(stage);
    const std::string scanned = scanned_dim(stage);
    std::vector<LoopName> loops;
    if (k.loops.empty()) loops = default_loops(lowering, stage, k);
    for (const std::string &text : k.loops)
        loops.push_back(parse_loop(text, [&](const std::string &d) { return lowering.algorithm.find_dim(d) != nullptr; }));
    auto has_point = [&](const std::string &d) {
        return std::any_of(loops.begin(), loops.end(), [&](const LoopName &l) { return l.level.empty() && l.dim == d; });
    };
    auto is_folded = [&](const std::string &d) { return std::find(folded.begin(), folded.end(), d) != folded.end(); };
    auto end_of_spatial = std::find_if(loops.begin(), loops.end(), [&](const LoopName &l) { return l.level.empty() && is_folded(l.dim); });
    std::vector<LoopName> missing;
    for (int vectors = 0; vectors < 2; vectors++)
        for (const std::string &d : stage.dims)
            if (!has_point(d) && !lowering.mapping->innermost_tiles(k).count(d) && (k.vector.count(d) > 0) == (vectors == 1) &&
                d != scanned)
                missing.push_back({"", d});
    loops.insert(end_of_spatial, missing.begin(), missing.end());
    if (!scanned.empty()) loops.push_back({"", scanned});
    for (const std::string &d : folded)
        if (!has_point(d)) loops.push_back({"", d});
    return loops;
}

// Accumulators live inside the loops over the stage's own dims; those of a scan inside all but the scanned one.
static size_t fold_position(const Stage &stage, const std::vector<LoopName> &loops) {
    if (std::holds_alternative<Scan>(stage.body)) return loops.size() - 1;
    if (!std::holds_alternative<Reduce>(stage.body)) return loops.size();
    size_t position = 0;
    for (size_t i = 0; i < loops.size(); i++)
        if (is_spatial(stage, loops[i].dim)) position = i + 1;
    return position;
}

static StageNest nest_of(const Lowering &lowering, const Stage &stage, const Stage &root, Assigned assigned) {
    StageNest nest;
    nest.stage = &stage, nest.root = &root;
    nest.knobs = std::move(assigned.knobs), nest.threads = assigned.threads;
    nest.loops = loops_of(lowering, stage, nest.knobs);
    nest.step = step_of(nest.knobs);
    nest.fold_at = fold_position(stage, nest.loops);
    nest.parallel = lowering.mapping->parallel_loops(nest);
    return nest;
}

StageNest root_nest(const Lowering &lowering, const Stage &stage, const Pieces &pieces) {
    return nest_of(lowering, stage, stage, lowering.mapping->assign(lowering, stage, pieces, std::nullopt));
}

StageNest placed_nest(const Lowering &lowering, const Stage &stage, const Pieces &pieces, const StageNest &around) {
    return nest_of(lowering, stage, *around.root, lowering.mapping->assign(lowering, stage, pieces, around.threads));
}

}  // namespace tessera

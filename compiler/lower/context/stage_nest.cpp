#include "compiler/lower/context/stage_nest.h"

#include <algorithm>

#include "support/text/error.h"

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

static bool names_loop(const Place &place, const StageNest &nest, size_t position) {
    const LoopName &loop = nest.loops[position];
    if (place.stage != nest.stage->name || place.loop.empty()) return false;
    if (place.loop == loop.text()) return true;
    if (place.loop != loop.level) return false;
    for (size_t i = position + 1; i < nest.loops.size(); i++)
        if (nest.loops[i].level == place.loop) return false;
    return true;
}

bool is_demanded_at(const Place &place, const StageNest &nest, size_t position) {
    return place.kind == Place::Kind::at && names_loop(place, nest, position);
}

bool is_owned_at(const Place &place, const StageNest &nest, size_t position) {
    return place.kind == Place::Kind::beside && names_loop(place, nest, position);
}

static bool is_tiled(const Knobs &k, const std::string &dim) {
    return k.block.count(dim) || k.k.count(dim) || k.micro.count(dim) ||
           std::any_of(k.levels.begin(), k.levels.end(), [&](const auto &level) { return level.second.count(dim) > 0; });
}

// For the steps of a scatter: the dims of its result along which positions are computed.
static std::vector<std::string> computed_dims(const Lowering &lowering, const Stage &step) {
    std::vector<std::string> computed = lowering.results(step)[0].dims;
    std::erase_if(computed, [&](const std::string &d) { return is_spatial(step, d) || folds_over(step, d); });
    return computed;
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
    if (scatters(stage)) level("block", k.block, computed_dims(lowering, stage));
    level("block", k.block, stage.dims);
    level("k", k.k, folded);
    for (auto &[name, extents] : k.levels) level(name, extents, stage.dims), level(name, extents, folded);
    level("micro", k.micro, stage.dims);
    return loops;
}

static bool has_point(const std::vector<LoopName> &loops, const std::string &dim) {
    return std::any_of(loops.begin(), loops.end(), [&](const LoopName &l) { return l.level.empty() && l.dim == dim; });
}

// A scatter accumulates in memory, so loops over its ordinary dims may stand inside those of its fold, where they go over what lies side by
// side. Parallel ones stand outermost, and those on which the size of a folded dim depends outside of its loop.
static std::vector<LoopName> with_points_of_scatter(const Lowering &lowering, const Stage &step, const Knobs &k,
                                                    std::vector<LoopName> loops) {
    const std::vector<std::string> folded = reduced_dims(step);
    auto is_outside = [&](const std::string &d) {
        return lowering.mapping->parallel_kind() == LoopKind::block ||
               std::find(k.parallel.begin(), k.parallel.end(), d) != k.parallel.end() ||
               std::any_of(folded.begin(), folded.end(), [&](const std::string &f) {
                   const Expr &size = lowering.algorithm.dim(f).size;
                   return size.defined() && uses_variable(size, d);
               });
    };
    std::vector<LoopName> outside, inside;
    for (int vectors = 0; vectors < 2; vectors++)
        for (const std::string &d : step.dims)
            if (!has_point(loops, d) && !lowering.mapping->innermost_tiles(k).count(d) && (k.vector.count(d) > 0) == (vectors == 1))
                (is_outside(d) ? outside : inside).push_back({"", d});
    loops.insert(loops.begin(), outside.begin(), outside.end());
    for (const std::string &d : folded)
        if (!has_point(loops, d)) loops.push_back({"", d});
    loops.insert(loops.end(), inside.begin(), inside.end());
    return loops;
}

std::vector<LoopName> loops_of(const Lowering &lowering, const Stage &stage, const Knobs &k) {
    const std::vector<std::string> folded = reduced_dims(stage);
    const std::string scanned = scanned_dim(stage);
    std::vector<LoopName> loops;
    if (k.loops.empty()) loops = default_loops(lowering, stage, k);
    for (const std::string &text : k.loops)
        loops.push_back(parse_loop(text, [&](const std::string &d) { return lowering.algorithm.find_dim(d) != nullptr; }));
    if (scatters(stage)) return with_points_of_scatter(lowering, stage, k, std::move(loops));
    auto is_folded = [&](const std::string &d) { return std::find(folded.begin(), folded.end(), d) != folded.end(); };
    auto end_of_spatial = std::find_if(loops.begin(), loops.end(), [&](const LoopName &l) { return l.level.empty() && is_folded(l.dim); });
    std::vector<LoopName> missing;
    for (int vectors = 0; vectors < 2; vectors++)
        for (const std::string &d : stage.dims)
            if (!has_point(loops, d) && !lowering.mapping->innermost_tiles(k).count(d) && (k.vector.count(d) > 0) == (vectors == 1) &&
                d != scanned)
                missing.push_back({"", d});
    loops.insert(end_of_spatial, missing.begin(), missing.end());
    if (!scanned.empty()) loops.push_back({"", scanned});
    for (const std::string &d : folded)
        if (!has_point(loops, d)) loops.push_back({"", d});
    return loops;
}

// Accumulators live inside the loops over the stage's own dims; those of a scan inside all but the scanned one.
static size_t fold_position(const Stage &stage, const std::vector<LoopName> &loops) {
    if (std::holds_alternative<Scan>(stage.body)) return loops.size() - 1;
    if (!std::holds_alternative<Reduce>(stage.body) || scatters(stage)) return loops.size();
    size_t position = 0;
    for (size_t i = 0; i < loops.size(); i++)
        if (is_spatial(stage, loops[i].dim)) position = i + 1;
    return position;
}

// Elements of a fold that is not commutative come in the order of its dims.
static void check_fold_order(const StageNest &nest) {
    auto *reduce = std::get_if<Reduce>(&nest.stage->body);
    if (!reduce || reduce->monoid.commutative) return;
    ptrdiff_t last = 0;
    for (const LoopName &loop : nest.loops) {
        const ptrdiff_t at = std::find(reduce->dims.begin(), reduce->dims.end(), loop.dim) - reduce->dims.begin();
        if (at == static_cast<ptrdiff_t>(reduce->dims.size())) continue;
        if (at < last)
            throw UserError("schedule.loops", nest.stage->name + ": '" + reduce->monoid.name +
                                                  "' is not commutative, so its elements have to come in the order of " +
                                                  join(reduce->dims) + "; the loops are " + text_of(nest.loops) +
                                                  ". Put them in that order.");
        last = at;
    }
}

static StageNest nest_of(const Lowering &lowering, const Stage &stage, const Stage &root, Assigned assigned) {
    StageNest nest;
    nest.stage = &stage, nest.root = &root;
    nest.knobs = std::move(assigned.knobs), nest.threads = assigned.threads;
    nest.loops = loops_of(lowering, stage, nest.knobs);
    nest.step = step_of(stage, nest.knobs);
    check_fold_order(nest);
    nest.fold_at = fold_position(stage, nest.loops);
    nest.parallel = lowering.mapping->parallel_loops(nest);
    return nest;
}

StageNest root_nest(const Lowering &lowering, const Stage &stage, const Pieces &pieces) {
    return root_nest(lowering, stage, lowering.knobs(stage.name), pieces);
}

StageNest root_nest(const Lowering &lowering, const Stage &stage, const Knobs &stated, const Pieces &pieces) {
    return nest_of(lowering, stage, stage, lowering.mapping->assign(lowering, stage, stated, pieces, std::nullopt));
}

StageNest placed_nest(const Lowering &lowering, const Stage &stage, const Pieces &pieces, const StageNest &around) {
    const Knobs &stated = lowering.knobs(stage.name);
    return nest_of(lowering, stage, *around.root, lowering.mapping->assign(lowering, stage, stated, pieces, around.threads));
}

}  // namespace tessera

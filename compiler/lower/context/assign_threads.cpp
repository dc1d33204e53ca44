#include "compiler/lower/context/assign_threads.h"

#include <algorithm>

#include "compiler/lower/context/tile_step.h"
#include "support/text/error.h"

namespace tessera {

static constexpr int64_t warp = 32;

// Points of a dim that may not be tiled: the sizes of other dims of the stage depend on which it is.
static bool is_outer_of_ragged(const Algorithm &algorithm, const Stage &stage, const std::string &dim) {
    std::vector<std::string> dims = stage.dims;
    for (const std::string &d : reduced_dims(stage)) dims.push_back(d);
    return std::any_of(dims.begin(), dims.end(),
                       [&](const std::string &d) { return algorithm.dim(d).size.defined() && uses_variable(algorithm.dim(d).size, dim); });
}

// What a piece of a dim has at most, as far as that is known.
static std::optional<int64_t> max_of(const Pieces &pieces, const std::string &dim) {
    auto piece = pieces.find(dim);
    if (piece == pieces.end() || !piece->second.max_size.defined() || !piece->second.max_size.is_constant()) return std::nullopt;
    return piece->second.max_size->value.integer;
}

static void add_tile(Knobs &k, const std::string &dim, int64_t extent) {
    k.block[dim] = extent;
    if (!k.loops.empty()) k.loops.insert(k.loops.begin(), "block." + dim);
}

[[noreturn]] static void refuse(const Stage &stage, const std::string &why) {
    throw UserError("schedule.threads", stage.name + ": " + why);
}

// Gives each part of `micro` points a tile of at least that; gives the threads that the tiles need.
static int64_t add_parts(Knobs &k, const Stage &stage, const Pieces &pieces) {
    int64_t used = 1;
    const std::string scanned = scanned_dim(stage);
    for (const std::string &d : stage.dims) {
        if (d == scanned) continue;
        int64_t lanes = k.vector.count(d) ? k.vector.at(d) : 1, micro = k.micro.count(d) ? k.micro.at(d) : lanes;
        if (micro % lanes)
            refuse(stage, "micro " + d + " = " + std::to_string(micro) + " must be a multiple of vector " + d + " = " +
                              std::to_string(lanes) + ".");
        if (auto most = max_of(pieces, d); most && lanes == 1 && !k.block.count(d))
            micro = std::max<int64_t>(1, std::min(micro, *most)), k.micro.erase(d);
        if (micro > 1 && !k.block.count(d)) add_tile(k, d, micro);
        if (!k.block.count(d)) continue;
        if (k.block.at(d) % micro)
            refuse(stage, "block " + d + " = " + std::to_string(k.block.at(d)) + " must be a multiple of micro " + d + " = " +
                              std::to_string(micro) + ", which is one thread's part of it.");
        if (micro > 1) k.micro[d] = micro;
        used *= k.block.at(d) / micro;
    }
    return used;
}

// Tiles for the threads that have nothing to do yet, innermost dims first; gives the threads that are used then.
static int64_t add_tiles(Knobs &k, const Lowering &lowering, const Stage &stage, const Pieces &pieces, int64_t used, int64_t threads) {
    int64_t left = threads / used;
    const std::string scanned = scanned_dim(stage);
    for (auto d = stage.dims.rbegin(); d != stage.dims.rend() && left > 1; ++d) {
        auto piece = pieces.find(*d);
        if (*d == scanned || k.block.count(*d) || piece == pieces.end() || !piece->second.size.defined() ||
            is_outer_of_ragged(lowering.algorithm, stage, *d))
            continue;
        int64_t extent = left;
        if (auto most = max_of(pieces, *d))
            for (extent = 1; extent < *most && extent * 2 <= left;) extent *= 2;
        if (extent == 1) continue;
        add_tile(k, *d, extent);
        left /= extent, used *= extent;
    }
    return used;
}

Assigned assign_threads(const Lowering &lowering, const Target &target, const Stage &stage, Knobs stated, const Pieces &pieces,
                        std::optional<int64_t> of_root) {
    Knobs k = std::move(stated);
    for (const std::string &loop : k.loops)
        if (loop.starts_with("micro."))
            refuse(stage, "'loops' lists '" + loop + "', and on " + target.name +
                              " micro is a thread's part of a block's tile and no loop; list block." + loop.substr(6) +
                              " or delete 'loops'.");
    const TileStep step = step_of(stage, k);
    const int64_t each = is_by_warps(step) ? warp : 1;
    const bool states_tiles = !k.block.empty() || !k.loops.empty();
    int64_t used = add_parts(k, stage, pieces) * each, threads = 1;
    if (of_root) {
        threads = *of_root;
        if (!states_tiles) used = add_tiles(k, lowering, stage, pieces, used, threads);
    } else {
        const bool is_tiled = states_tiles || !k.block.empty();
        threads = k.warps ? *k.warps * warp : is_tiled ? used : warp;
        if (used > threads)
            refuse(stage, "block needs " + std::to_string(used) + " threads and warps = " + std::to_string(*k.warps) + " gives " +
                              std::to_string(threads) + "; make micro larger, block smaller or warps more.");
    }
    if (std::max(used, threads) > target.max_threads)
        refuse(stage, "a block of " + std::to_string(std::max(used, threads)) + " threads is more than the " +
                          std::to_string(target.max_threads) + " of " + target.name + "; make micro larger or block smaller.");
    return {std::move(k), threads};
}

}  // namespace tessera

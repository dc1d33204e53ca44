// How the threads of a GPU's block share the work of a stage. One team computes one tile of `block` points at a time, and
// thread loops cut it into parts of `micro` points. Blocks of a stage at root run in any order; those of a stage inside another's
// loops one after the other, by the team of that other stage.
#include <algorithm>

#include "compiler/lower/nest_state.h"
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

void Nests::share_out(const Stage &stage, const Pieces &pieces, bool root) {
    auto stated = schedule.find(stage.name);
    Knobs k = stated == schedule.end() ? Knobs{} : stated->second;
    auto refuse = [&](const std::string &why) { throw UserError("schedule.threads", stage.name + ": " + why); };
    for (const std::string &loop : k.loops)
        if (loop.starts_with("micro."))
            refuse("'loops' lists '" + loop + "', and on " + target.name +
                   " micro is a thread's part of a block's tile and no loop; list block." + loop.substr(6) + " or delete 'loops'.");
    std::string scanned = std::holds_alternative<Scan>(stage.body) ? std::get<Scan>(stage.body).dim : "";
    auto add_tile = [&](const std::string &dim, int64_t extent) {
        k.block[dim] = extent;
        if (!k.loops.empty()) k.loops.insert(k.loops.begin(), "block." + dim);
    };
    const bool stated_tiles = !k.block.empty() || !k.loops.empty();
    bool tiled = stated_tiles;
    int64_t used = 1;
    // What a piece of a dim has at most, as far as that is known.
    auto max_of = [&](const std::string &dim) -> std::optional<int64_t> {
        auto piece = pieces.find(dim);
        if (piece == pieces.end() || !piece->second.most.defined() || !piece->second.most.is_constant()) return std::nullopt;
        return piece->second.most->value.integer;
    };
    for (const std::string &d : stage.dims) {
        if (d == scanned) continue;
        int64_t lanes = k.vector.count(d) ? k.vector.at(d) : 1, micro = k.micro.count(d) ? k.micro.at(d) : lanes;
        if (micro % lanes)
            refuse("micro " + d + " = " + std::to_string(micro) + " must be a multiple of vector " + d + " = " + std::to_string(lanes) +
                   ".");
        if (auto most = max_of(d); most && lanes == 1 && !k.block.count(d))
            micro = std::max<int64_t>(1, std::min(micro, *most)), k.micro.erase(d);
        if (micro > 1 && !k.block.count(d)) add_tile(d, micro), tiled = true;
        if (!k.block.count(d)) continue;
        if (k.block.at(d) % micro)
            refuse("block " + d + " = " + std::to_string(k.block.at(d)) + " must be a multiple of micro " + d + " = " +
                   std::to_string(micro) + ", which is one thread's part of it.");
        if (micro > 1) k.micro[d] = micro;
        used *= k.block.at(d) / micro;
    }
    if (root) {
        threads = k.warps ? *k.warps * warp : tiled ? used : warp;
        if (used > threads)
            refuse("block needs " + std::to_string(used) + " threads and warps = " + std::to_string(*k.warps) + " gives " +
                   std::to_string(threads) + "; make micro larger, block smaller or warps more.");
    } else if (!stated_tiles) {
        int64_t left = threads / used;
        for (auto d = stage.dims.rbegin(); d != stage.dims.rend() && left > 1; ++d) {
            auto piece = pieces.find(*d);
            if (*d == scanned || k.block.count(*d) || piece == pieces.end() || !piece->second.size.defined() ||
                is_outer_of_ragged(algorithm, stage, *d))
                continue;
            int64_t extent = left;
            if (auto most = max_of(*d))
                for (extent = 1; extent < *most && extent * 2 <= left;) extent *= 2;
            if (extent == 1) continue;
            add_tile(*d, extent);
            left /= extent, used *= extent;
        }
    }
    if (std::max(used, threads) > target.max_threads)
        refuse("a block of " + std::to_string(std::max(used, threads)) + " threads is more than the " + std::to_string(target.max_threads) +
               " of " + target.name + "; make micro larger or block smaller.");
    shared_out[stage.name] = k;
}

// Constant storage of a block is shared memory as long as there is some; what is beyond is in the block's part of the workspace.
Space Nests::space_of(const Buffer &buffer) {
    int64_t bytes = size_of(buffer.dtype);
    for (const Expr &e : buffer.extents) {
        if (!e.is_constant()) return Space::workspace;
        bytes *= e->value.integer;
        if (bytes > shared_left) return Space::workspace;
    }
    shared_left -= (bytes + 15) / 16 * 16;
    return Space::shared;
}

int64_t Nests::Team::of(const std::string &dim) const {
    for (auto &[d, n] : along)
        if (d == dim) return n;
    return 1;
}

Nests::Team Nests::team_of(const State &state) const {
    Team team;
    for (const std::string &d : tile_dims(state)) {
        const Expr &size = state.pieces.at(d).size;
        require(size.is_constant(), "a tile of a block has constant extents (" + state.stage->name + "." + d + ")");
        int64_t micro = state.knobs->micro.count(d) ? state.knobs->micro.at(d) : 1;
        if (size->value.integer % micro)
            throw UserError("schedule.threads", state.stage->name + ": a tile of " + std::to_string(size->value.integer) + " along " + d +
                                                    " is not made of whole parts of " + std::to_string(micro) +
                                                    ", one for each thread; use levels, micro and vector that divide one another.");
        int64_t n = size->value.integer / micro;
        if (n == 1) continue;
        team.along.emplace_back(d, n);
        team.threads *= n;
    }
    return team;
}

void Nests::name_threads(Team &team) {
    team.thread = unique("thread");
    facts.set(team.thread, Expr(0), Expr(team.threads - 1));
    for (size_t i = 0; i < team.along.size(); i++) {
        auto &[d, n] = team.along[i];
        team.digits[d] = variable(team.along.size() == 1 ? team.thread : unique(team.thread + "." + plain(d)));
        facts.set(team.digits[d]->name, Expr(0), Expr(n - 1));
        team.rests.push_back(i == 0 ? team.thread : i + 1 == team.along.size() ? team.digits[d]->name : unique(team.thread + ".rest"));
    }
}

// The thread loop; with several dims, the number of a thread taken apart into its digits.
TileBody Nests::by_threads(const Team &team, TileBody body) const {
    int64_t below = 1;
    for (size_t i = team.along.size(); i-- > 1;) {
        below *= team.along[i].second;
        Expr rest = variable(team.rests[i - 1]);
        body = {tile_node(Let{team.rests[i], rest % Expr(below), std::move(body)})};
        body = {tile_node(Let{team.digits.at(team.along[i - 1].first)->name, rest / Expr(below), std::move(body)})};
    }
    return {tile_node(Loop{team.thread, Expr(team.threads), LoopKind::thread, std::move(body)})};
}

}  // namespace tessera

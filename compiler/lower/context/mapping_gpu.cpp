// Loops on a GPU: the outermost ones of a stage at root go over blocks; the threads of a block compute a tile together, in registers of
// their own, and keep what they share in shared memory.
#include <algorithm>

#include "algorithms/index/prove.h"
#include "compiler/lower/context/assign_threads.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/context/extents.h"
#include "compiler/lower/context/mapping.h"
#include "compiler/lower/passes/add_barriers.h"
#include "compiler/lower/passes/copies_ahead.h"
#include "compiler/lower/passes/fuse_parallel.h"
#include "compiler/lower/passes/shared_memory.h"
#include "compiler/lower/passes/trivial_lets.h"
#include "compiler/rewrite/target_knobs.h"
#include "support/text/error.h"

namespace tessera {

namespace {

class GpuMapping final : public Mapping {
public:
    explicit GpuMapping(const Target &target) : target_(target) {}

    void check_before_rewrites(const KnobsByStage &stages) const override;
    void check(const std::string &stage, const Knobs &k) const override;
    int pack_lanes() const override { return 0; }

    Assigned assign(const Lowering &lowering, const Stage &stage, Knobs stated, const Pieces &pieces,
                    std::optional<int64_t> threads) const override {
        return assign_threads(lowering, target_, stage, std::move(stated), pieces, threads);
    }
    bool is_loop(const std::string &level) const override { return level != "micro"; }
    const Extents &innermost_tiles(const Knobs &k) const override { return k.block; }
    size_t parallel_loops(const StageNest &nest) const override;
    LoopKind parallel_kind() const override { return LoopKind::block; }
    int64_t tile_unit(const StageNest &nest, const std::string &dim) const override {
        auto micro = nest.knobs.micro.find(dim);
        return micro == nest.knobs.micro.end() ? unit(nest.step, dim) : micro->second;
    }
    // What a placed stage computes is mostly one tile, of which not all may be needed.
    bool runs_once(const Piece &piece, int64_t tile, const Bounds &facts) const override {
        return piece.max_size.is_constant() && piece.max_size->value.integer <= tile && prove(Expr(1) <= piece.size, facts);
    }
    bool joins_runs() const override { return false; }
    // One version for both: threads test their points while they wait for memory, and shared memory need be set aside once only.
    bool tells_full_from_partial() const override { return false; }
    std::optional<Team> team(const Cursor &at) const override { return team_of(at); }

    int64_t storage_unit(const Knobs &k, const std::string &dim, const Piece &piece) const override;
    Space register_space(const Buffer &) const override { return Space::registers; }
    Space near_space(const Buffer &) const override { return Space::shared; }

    bool is_led_by_host() const override { return true; }
    Space space_between_calls() const override { return Space::workspace; }
    TileBody over_box(const std::vector<std::pair<std::string, Expr>> &box, const TileNode &store) const override;

    std::vector<NestPass> nest_passes(const std::vector<std::string> &names, const TileProgram &frame) const override;
    std::vector<BodyPass> body_passes(const TileProgram &frame) const override {
        return {{"make copies ahead that the processor has",
                 [&frame, has = target_.arch == Arch::cuda](const TileBody &body) { return with_copies_ahead(body, frame, has); }},
                {"add barriers", [&frame](const TileBody &body) { return add_barriers(body, frame.dims); }}};
    }

private:
    Target target_;
};

void GpuMapping::check_before_rewrites(const KnobsByStage &stages) const {
    for (auto &[name, k] : stages) {
        if (!k.parallel.empty()) check(name, k);  // at the scope of a call it is no stage's
        for (auto &[operand, pack] : k.pack)
            if (pack.is_ahead())
                throw UserError("schedule.gpu", name + ": packing '" + operand + "' ahead of time is not for " + target_.name +
                                                    "; delete it (null). Pack it at a loop, which stages it in shared memory.");
    }
}

void GpuMapping::check(const std::string &stage, const Knobs &k) const {
    auto refuse = [&](const std::string &what) {
        throw UserError("schedule.gpu",
                        stage + ": " + what + " is not for " + target_.name +
                            "; delete it (null). Blocks and threads come from block and micro, and shared memory from pack and place.");
    };
    if (const std::optional<Knob> knob = knob_without_use(k, target_)) refuse("'" + std::string(name_of(*knob)) + "'");
    for (auto &[dim, policy] : k.tail)
        if (policy != Tail::mask) refuse(std::string("'tail' with the policy ") + name_of(policy));
    auto is_micro = [](const std::string &loop) { return loop == "micro" || loop.starts_with("micro."); };
    auto no_micro = [&](bool found, const std::string &what) {
        if (found) refuse(what + " in micro, a thread's part of a block's tile and no loop,");
    };
    no_micro(k.place && k.place->kind == Place::Kind::at && is_micro(k.place->loop), "a place");
    for (auto &[operand, pack] : k.pack) no_micro(is_micro(pack.at), "a pack of '" + operand + "'");
}

// The outermost loops of a stage at root that write apart go over blocks.
size_t GpuMapping::parallel_loops(const StageNest &nest) const {
    size_t parallel = 0;
    while (nest.is_at_root() && parallel < std::min(nest.fold_at, nest.loops.size())) {
        const std::string &dim = nest.loops[parallel].dim;
        if (folds_over(*nest.stage, dim) || !writes_apart(*nest.stage, dim)) break;
        parallel++;
    }
    return parallel;
}

int64_t GpuMapping::storage_unit(const Knobs &k, const std::string &dim, const Piece &) const {
    for (const Extents *tiles : {&k.block, &k.micro, &k.vector})
        if (auto it = tiles->find(dim); it != tiles->end()) return it->second;
    return 1;
}

// Blocks go along the last axis in strips, of which each thread stores one point.
TileBody GpuMapping::over_box(const std::vector<std::pair<std::string, Expr>> &box, const TileNode &store) const {
    if (box.empty()) {
        const std::string &name = store_of(store)->buffer;
        return in_loop(name + ".block", Expr(1), LoopKind::block, in_loop(name + ".thread", Expr(1), LoopKind::thread, {tile_node(store)}));
    }
    constexpr int64_t strip = 64;
    const auto &[last, count] = box.back();
    const std::string block = last + ".block", thread = last + ".thread";
    const std::map<std::string, Expr> point = {{last, variable(block) * strip + variable(thread)}};
    const TileNode there = map_expressions(store, [&](const Expr &e) { return substitute(e, point); });
    TileBody body = in_loop(thread, Expr(strip), LoopKind::thread, in_guard(point.at(last) < count, {tile_node(there)}));
    body = in_loop(block, (count + (strip - 1)) / Expr(strip), LoopKind::block, std::move(body));
    for (size_t i = box.size() - 1; i-- > 0;) body = in_loop(box[i].first, box[i].second, LoopKind::block, std::move(body));
    return fuse_parallel(body, LoopKind::block);
}

// The host counts blocks and sees no data: a loop that data counts is run by one block, with all loops in it.
static TileBody blocks_without_data(const TileBody &body) {
    TileBody result;
    for (const auto &node : body) {
        const auto *loop = std::get_if<Loop>(node.get());
        if (!loop || loop->kind != LoopKind::block || !is_data(loop->count))
            result.push_back(tile_node(map_bodies(*node, blocks_without_data)));
        else append(result, serial_within({node}, LoopKind::block));
    }
    return result;
}

// One stage at root: nothing but loops of blocks.
static TileBody in_blocks(const Stage &stage, const TileBody &nest) {
    const bool only_blocks = std::all_of(nest.begin(), nest.end(), [](const auto &n) {
        auto *loop = std::get_if<Loop>(n.get());
        return loop && loop->kind == LoopKind::block;
    });
    if (only_blocks) return nest;
    return in_loop(stage.name + ".block", Expr(1), LoopKind::block, serial_within(nest, LoopKind::block));
}

std::vector<NestPass> GpuMapping::nest_passes(const std::vector<std::string> &names, const TileProgram &frame) const {
    return {
        {"place buffers in shared memory",
         [names, bytes = target_.shared_bytes](const Stage &, const TileBody &nest) { return with_shared_memory(nest, names, bytes); }},
        {"bind constants", [](const Stage &, const TileBody &nest) { return without_trivial_lets(nest); }},
        {"count blocks without data", [](const Stage &, const TileBody &nest) { return blocks_without_data(nest); }},
        {"fuse loops of blocks", [&frame](const Stage &, const TileBody &nest) { return fuse_parallel(nest, LoopKind::block, frame); }},
        {"run in one block what has none", in_blocks},
    };
}

}  // namespace

std::shared_ptr<const Mapping> gpu_mapping(const Target &target) { return std::make_shared<const GpuMapping>(target); }

}  // namespace tessera

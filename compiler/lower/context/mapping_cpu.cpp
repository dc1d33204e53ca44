// Loops on a CPU: the outermost ones in parallel, vectors and code written out innermost, each worker with its own stack.
#include <algorithm>
#include <numeric>

#include "compiler/instructions/families.h"
#include "compiler/lower/context/built.h"
#include "compiler/lower/context/mapping.h"
#include "compiler/lower/passes/fuse_parallel.h"
#include "compiler/lower/passes/stack_buffers.h"
#include "compiler/lower/passes/trivial_lets.h"
#include "compiler/rewrite/target_knobs.h"
#include "support/text/error.h"

namespace tessera {

namespace {

// Constant storage up to 16 KiB lives on the stack or in registers; more goes to the caller's workspace. It is also the
// most that Halide puts on the stack: beyond, it would call an allocator.
bool fits_on_stack(const Buffer &buffer) {
    int64_t bytes = size_of(buffer.dtype);
    for (const Expr &e : buffer.extents) {
        if (!e.is_constant()) return false;
        bytes *= e->value.integer;
        if (bytes > 16 * 1024) return false;
    }
    return true;
}

class CpuMapping final : public Mapping {
public:
    explicit CpuMapping(const Target &target) : target_(target) {}

    void check_before_rewrites(const KnobsByStage &) const override {}
    void check(const std::string &stage, const Knobs &k) const override;
    int pack_lanes() const override { return std::max(1, target_.vector_bytes / 4); }

    Assigned assign(const Lowering &, const Stage &, Knobs stated, const Pieces &, std::optional<int64_t>) const override {
        return {std::move(stated), 1};
    }
    bool is_loop(const std::string &) const override { return true; }
    const Extents &innermost_tiles(const Knobs &k) const override { return k.micro; }
    size_t parallel_loops(const StageNest &nest) const override;
    LoopKind parallel_kind() const override { return LoopKind::parallel; }
    int64_t tile_unit(const StageNest &nest, const std::string &dim) const override { return unit(nest.step, dim); }
    bool runs_once(const Piece &, int64_t, const Bounds &) const override { return false; }
    bool joins_runs() const override { return true; }
    bool tells_full_from_partial() const override { return true; }
    std::optional<Team> team(const Cursor &) const override { return std::nullopt; }

    int64_t storage_unit(const Knobs &k, const std::string &dim, const Piece &piece) const override;
    Space register_space(const Buffer &b) const override { return fits_on_stack(b) ? Space::registers : Space::workspace; }
    Space near_space(const Buffer &b) const override { return fits_on_stack(b) ? Space::stack : Space::workspace; }

    bool is_led_by_host() const override { return false; }
    Space space_between_calls() const override { return Space::stack; }
    TileBody over_box(const std::vector<std::pair<std::string, Expr>> &box, const TileNode &store) const override {
        TileBody body = {tile_node(store)};
        for (size_t i = box.size(); i-- > 0;) body = in_loop(box[i].first, box[i].second, LoopKind::serial, std::move(body));
        return body;
    }

    std::vector<NestPass> nest_passes(const std::vector<std::string> &, const TileProgram &) const override { return {}; }
    std::vector<BodyPass> body_passes(const TileProgram &frame) const override {
        return {{"bind constants", without_trivial_lets},
                {"keep what the stack cannot hold in the workspace", limit_stack},
                {"fuse parallel loops", [&frame](const TileBody &body) { return fuse_parallel(body, LoopKind::parallel, frame); }}};
    }

private:
    Target target_;
};

void CpuMapping::check(const std::string &stage, const Knobs &k) const {
    if (const std::optional<Knob> knob = knob_without_use(k, target_))
        throw UserError("schedule.cpu",
                        stage + ": '" + std::string(name_of(*knob)) + "' is for GPU targets; delete it (null) in the schedule of a CPU.");
    for (const auto &[operand, pack] : k.pack)
        if (pack.stages > 1)
            throw UserError("schedule.cpu", stage + ": 'stages' of the pack of '" + operand +
                                                "' is for GPU targets; delete it (null) in the schedule of a CPU.");
    for (const auto &[dim, extent] : k.micro)
        if (!k.loops.empty() && std::find(k.loops.begin(), k.loops.end(), "micro." + dim) == k.loops.end())
            throw UserError("schedule.loops", stage + ": the tile 'micro." + dim + "' is in no loop; the loops are " + join(k.loops) +
                                                  ". Add it to them, or delete the tile: only on a GPU is it a thread's part of block." +
                                                  dim + ".");
}

// Parallel iterations must write apart.
void check_update_is_parallel(const StageNest &nest, size_t parallel) {
    for (size_t i = 0; i < parallel; i++)
        if (const std::string &dim = nest.loops[i].dim; !writes_apart(*nest.stage, dim))
            throw UserError("schedule.parallel", nest.stage->name + ": iterations of '" + dim + "' may write the same element of '" +
                                                     writes_of(*nest.stage)[0]->state +
                                                     "', so they cannot run in parallel; parallel dims of an update are those that "
                                                     "index its state directly.");
}

size_t CpuMapping::parallel_loops(const StageNest &nest) const {
    const std::vector<std::string> &stated = nest.knobs.parallel;
    if (stated.empty()) return 0;
    auto is_parallel = [&](const LoopName &l) {
        return std::find(stated.begin(), stated.end(), l.text()) != stated.end() ||
               (!l.level.empty() && std::find(stated.begin(), stated.end(), l.level) != stated.end());
    };
    size_t parallel = 0;
    while (parallel < nest.loops.size() && is_parallel(nest.loops[parallel])) parallel++;
    const auto total = static_cast<size_t>(std::count_if(nest.loops.begin(), nest.loops.end(), is_parallel));
    auto refuse = [&](const std::string &why) {
        throw UserError("schedule.parallel", nest.stage->name + ": the loops " + join(stated) + " cannot be parallel: " + why +
                                                 "; the stage's loops are, outermost first, " + text_of(nest.loops) + ".");
    };
    if (total == 0 || total != parallel) refuse("parallel loops must be the outermost ones");
    if (!nest.is_at_root()) refuse("the stage is placed inside another stage's loops; only a stage at root has parallel loops");
    for (size_t i = 0; i < parallel; i++)
        if (folds_over(*nest.stage, nest.loops[i].dim) || (std::holds_alternative<Scan>(nest.stage->body) && i >= nest.fold_at))
            refuse("'" + nest.loops[i].text() + "' carries the fold; split the reduction across threads instead");
    check_update_is_parallel(nest, parallel);
    return parallel;
}

int64_t CpuMapping::storage_unit(const Knobs &k, const std::string &dim, const Piece &piece) const {
    const auto lanes = k.vector.find(dim), micro = k.micro.find(dim);
    int64_t vector = lanes == k.vector.end() ? 1 : lanes->second;
    // Rows and columns of fragments are whole too.
    const Instruction *family = k.instruction ? find_family(*k.instruction) : nullptr;
    if (family && has_fragments(*family) && micro != k.micro.end()) vector = std::lcm<int64_t>(family->shape.m, family->shape.n);
    const int64_t unit = micro == k.micro.end() ? vector : micro->second;
    // A tile that is larger than the region is cut to it, up to whole vectors.
    return piece.size.defined() && piece.size.is_constant() && piece.size->value.integer < unit ? vector : unit;
}

}  // namespace

std::shared_ptr<const Mapping> cpu_mapping(const Target &target) { return std::make_shared<const CpuMapping>(target); }

}  // namespace tessera

#include "compiler/rewrite/fragments.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "support/containers/contains.h"

namespace tessera {

// The dim whose points come last: of those that are folded and in no loop that the schedule lists the last, or else the last listed one.
static std::string innermost_folded(const std::vector<std::string> &folded, const std::vector<std::string> &loops) {
    std::string last;
    for (const std::string &d : folded)
        if (!contains(loops, d)) last = d;
    if (last.empty())
        for (const std::string &loop : loops)
            if (contains(folded, loop)) last = loop;
    return last;
}

// The last dim of the stage that the one uses and the other does not; one with a register tile before others.
static std::string dim_of(const std::set<std::string> &own, const std::set<std::string> &others, const Stage &stage, const Knobs &knobs) {
    std::string found;
    for (const std::string &d : stage.dims) {
        if (!own.count(d) || others.count(d)) continue;
        if (found.empty() || knobs.micro.count(d) || !knobs.micro.count(found)) found = d;
    }
    return found;
}

std::optional<FragmentFold> fragment_fold(const Instruction &family, const Stage &stage, const Knobs &knobs) {
    auto *reduce = std::get_if<Reduce>(&stage.body);
    if (!reduce || reduce->dims.empty() || scatters(stage) || reduce->where.defined()) return {};
    auto operands = operands_for(family, *reduce);
    if (!operands) return {};
    std::set<std::string> first = variables_in((*operands)[0]), second = variables_in((*operands)[1]);
    // Operands of one type may change places: columns lie along the last dim.
    if (family.first == family.second && first.count(stage.dims.back()) && !second.count(stage.dims.back()))
        std::swap((*operands)[0], (*operands)[1]), std::swap(first, second);
    FragmentFold fold{dim_of(first, second, stage, knobs), dim_of(second, first, stage, knobs), innermost_folded(reduce->dims, knobs.loops),
                      (*operands)[0], (*operands)[1]};
    if (fold.rows.empty() || fold.columns.empty() || fold.folded.empty()) return {};
    return fold;
}

int64_t registers_of_tile(int64_t rows, int64_t columns) { return rows * columns + std::min(rows, columns) + 1; }

// The dims of a tensor by what its element is asked for at: rows or columns, and products.
struct OperandDims {
    std::string own, folded, last;  // last: the innermost of all
    std::vector<std::string> others;
};

static std::optional<OperandDims> dims_of(const Algorithm &algorithm, const Expr &operand, const std::string &tensor,
                                          const std::string &own, const std::string &folded) {
    if (operand.kind() != ExprKind::load || operand->name != tensor || operand->guarded) return {};
    std::vector<std::string> dims;
    if (const Tensor *t = algorithm.find_tensor(tensor)) dims = t->dims;
    for (const Stage &stage : algorithm.stages())
        for (const Tensor &t : results_of(stage))
            if (t.name == tensor) dims = t.dims;
    OperandDims found;
    for (size_t i = 0; i < dims.size(); i++) {
        const Expr &at = operand->args[i];
        const bool is_plain = at.kind() == ExprKind::variable;
        (is_plain && at->name == own ? found.own : is_plain && at->name == folded ? found.folded : found.others.emplace_back()) = dims[i];
    }
    if (found.own.empty() || found.folded.empty()) return {};
    found.last = dims.back();
    return found;
}

static std::vector<LayoutAxis> layout_for(const Instruction &family, FragmentRole role, const OperandDims &dims, int64_t panel) {
    std::vector<LayoutAxis> layout;
    for (const std::string &d : dims.others) layout.push_back({d, 0, false});
    layout.push_back({dims.own, panel, false}), layout.push_back({dims.folded, family.shape.k, false});
    for (const LayoutAxis &digit : role == FragmentRole::a ? family.a : family.b) {
        const bool is_folded = digit.dim == "K";
        const std::string &dim = is_folded ? dims.folded : dims.own;
        const int64_t all = is_folded ? family.shape.k : panel;
        if (digit.factor == 0) layout.push_back({dim, all, true});
        else if (digit.remainder) layout.push_back({dim, digit.factor, true});
        else layout.push_back({dim, digit.factor, false, all});
    }
    return layout;
}

// A copy at a loop: of a row by row, of b as many products of each column as its layout interleaves.
static void add_tiles(Knobs &k, const Instruction &family, FragmentRole role, const OperandDims &dims) {
    if (!k.block.empty() || !k.micro.empty() || !k.loops.empty() || !k.vector.empty()) return;
    const LayoutAxis &last = (role == FragmentRole::a ? family.a : family.b).back();
    const bool along_folded = last.dim == "K" && last.factor == 0;
    const int64_t own = role == FragmentRole::a ? family.shape.m : family.shape.n;
    if (along_folded) {
        k.micro = {{dims.own, own}, {dims.folded, family.shape.k}};
        k.loops = {"micro." + dims.own, "micro." + dims.folded};
        k.vector = {{dims.folded, family.shape.k}};
    } else {
        k.micro = {{dims.own, own}, {dims.folded, last.dim == "K" ? last.positions() : family.shape.k}};
        k.loops = {"micro." + dims.folded, "micro." + dims.own};
        k.vector = {{dims.own, own}};
    }
}

// A copy to shared memory by the threads of a block's warps: each of them 16 bytes side by side, neighbours one row after the other.
static void add_chunks(Knobs &k, const Instruction &family, const OperandDims &dims, const std::string &own_dim, const FragmentFold &fold,
                       const Knobs &of_fold) {
    if (!k.block.empty() || !k.micro.empty() || !k.loops.empty() || !k.vector.empty()) return;
    const auto tile_along = [](const Extents &tiles, const std::string &dim) {
        const auto tile = tiles.find(dim);
        return tile == tiles.end() ? 0 : tile->second;
    };
    int64_t threads = threads_of(family.scope);
    for (const auto &[dim, tile] : of_fold.block)
        if (const int64_t part = tile_along(of_fold.micro, dim); part > 0) threads *= tile / part;
    const int64_t own = tile_along(of_fold.block, own_dim), folded = tile_along(of_fold.k, fold.folded);
    const std::string &last = dims.last;
    const int64_t chunk = 16 / size_of(family.first), length = last == dims.folded ? folded : own;
    if (own == 0 || folded == 0 || length % chunk || (last != dims.own && last != dims.folded)) return;
    const int64_t along = std::gcd(threads, length / chunk), rows = last == dims.folded ? own : folded;
    k.vector = k.micro = {{last, chunk}};
    k.block = {{last, along * chunk}};
    if (const int64_t at_once = std::gcd(threads / along, rows); at_once > 1)
        k.block[last == dims.folded ? dims.own : dims.folded] = at_once;
}

KnobsByStage with_fragment_layouts(const Algorithm &algorithm, KnobsByStage stages) {
    const KnobsByStage stated = stages;
    for (const auto &[name, knobs] : stated) {
        const Instruction *family = knobs.instruction ? find_family(*knobs.instruction) : nullptr;
        const Stage *stage = algorithm.find_stage(name);
        if (!family || !has_fragments(*family) || !stage) continue;
        const std::optional<FragmentFold> fold = fragment_fold(*family, *stage, knobs);
        if (!fold) continue;
        for (const auto &[tensor, pack] : knobs.pack) {
            for (const FragmentRole role : {FragmentRole::a, FragmentRole::b}) {
                const bool is_a = role == FragmentRole::a;
                const std::string &own = is_a ? fold->rows : fold->columns;
                const auto dims = dims_of(algorithm, is_a ? fold->a : fold->b, tensor, own, fold->folded);
                if (!dims) continue;
                // Warps load from shared memory, in the operand's own order.
                if (family->scope == ExecutionScope::warp) {
                    add_chunks(stages[name + "." + tensor + ".packed"], *family, *dims, own, *fold, knobs);
                    continue;
                }
                int64_t panel = is_a ? family->shape.m : family->shape.n;
                if (const auto micro = knobs.micro.find(own); !is_a && micro != knobs.micro.end()) panel = micro->second;
                const std::vector<LayoutAxis> layout = layout_for(*family, role, *dims, panel);
                if (!pack.layout.empty() && pack.layout != layout) continue;
                stages[name].pack[tensor].layout = layout;
                if (!pack.is_ahead()) add_tiles(stages[name + "." + tensor + ".packed"], *family, role, *dims);
            }
        }
    }
    return stages;
}

}  // namespace tessera

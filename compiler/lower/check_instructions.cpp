#include "compiler/lower/check_instructions.h"

#include <algorithm>
#include <functional>

#include "algorithms/transform/scopes.h"
#include "compiler/instructions/families.h"
#include "compiler/rewrite/fragments.h"
#include "support/text/error.h"

namespace tessera {

// A callee has its own.
static const Numerics &policy_of(const Algorithm &declared, const std::string &stage) {
    const Call *call = call_around(declared, stage);
    return call ? policy_of(*call->callee, stage.substr(call->scope.size() + 1)) : declared.numerics;
}

// "16 rows and 16 columns of 32 products".
static std::string text_of(const InstructionShape &shape) {
    return std::to_string(shape.m) + " rows and " + std::to_string(shape.n) + " columns of " + std::to_string(shape.k) + " products";
}

// Tiles are whole fragments, as many as there are registers for.
static void check_fragments(const Instruction &family, const Stage &stage, const Knobs &k,
                            const std::function<void(const std::string &)> &refuse) {
    const std::string of = "the instruction family " + family.name + " computes " + text_of(family.shape) + " at once; ";
    const std::optional<FragmentFold> fold = fragment_fold(family, stage, k);
    if (!fold)
        refuse(of + "expected a dim of rows that only one operand has and one of columns that only the other has; the stage's dims are " +
               join(stage.dims) + ". Delete the knob (null).");
    if (!k.vector.empty()) refuse(of + "its vectors are the family's own; got 'vector'. Delete that knob (null).");
    const auto tile_along = [&](const std::string &dim, int unit) -> int64_t {
        const auto micro = k.micro.find(dim);
        if (micro == k.micro.end() || micro->second % unit)
            refuse(of + "expected 'micro' to have a multiple of " + std::to_string(unit) + " along '" + dim + "'; got " +
                   (micro == k.micro.end() ? "none. State it." : std::to_string(micro->second) + ". Choose such a multiple."));
        if (const auto tail = k.tail.find(dim); tail != k.tail.end() && tail->second == Tail::loop)
            refuse(of + "the last tile along '" + dim +
                   "' cannot be a loop over points. Delete its tail (null), or choose 'mask' or 'narrow'.");
        return micro->second / unit;
    };
    const int64_t rows = tile_along(fold->rows, family.shape.m), columns = tile_along(fold->columns, family.shape.n);
    for (const auto &[dim, extent] : k.micro)
        if (dim != fold->rows && dim != fold->columns && extent != 1)
            refuse(of + "expected 'micro' to have rows along '" + fold->rows + "' and columns along '" + fold->columns +
                   "' alone; it has " + std::to_string(extent) + " of '" + dim + "'. Delete that.");
    const int64_t needed = registers_of_tile(rows, columns);
    if (needed > family.registers)
        refuse(of + "a register tile of " + std::to_string(rows) + " by " + std::to_string(columns) + " of them needs " +
               std::to_string(needed) + " registers, with those of operands; there are " + std::to_string(family.registers) +
               ". Make micro smaller.");
    const auto check_folded = [&](const Extents &tiles) {
        const auto tile = tiles.find(fold->folded);
        if (tile != tiles.end() && tile->second % family.shape.k)
            refuse(of + "expected tiles along '" + fold->folded + "' to be multiples of " + std::to_string(family.shape.k) + "; got " +
                   std::to_string(tile->second) + ". Choose such a multiple.");
    };
    check_folded(k.k), check_folded(k.block);
    for (const auto &[level, tiles] : k.levels) check_folded(tiles);
    const bool is_by_warps = family.scope == ExecutionScope::warp;
    if (is_by_warps && !k.k.count(fold->folded))
        refuse(of + "its operands lie in shared memory, slice by slice; expected 'k' to have tiles along '" + fold->folded +
               "', got none. State them, and pack the operands at 'k'.");
    if (k.tail.count(fold->folded)) refuse(of + "what is left over along '" + fold->folded + "' is zeros. Delete its tail (null).");
}

void check_instructions(const Algorithm &declared, const Algorithm &a, const KnobsByStage &stages, const Target &target) {
    for (auto &[name, k] : stages) {
        if (!k.instruction) continue;
        auto refuse = [&, stage = name](const std::string &why) { throw UserError("schedule.instruction", stage + ": " + why); };
        const Instruction *family = find_family(*k.instruction);
        if (!family)
            refuse("there is no instruction family '" + *k.instruction + "'; the families are " + join(family_names()) +
                   ": fma and mul_add on every target, the others where a processor has the instruction. Choose one of them, or delete the "
                   "knob "
                   "(null)." +
                   did_you_mean(*k.instruction, family_names()));
        if (!is_on(*family, target)) {
            std::vector<std::string> own;
            for (const Instruction &i : families())
                if (is_on(i, target)) own.push_back(i.name);
            const std::vector<std::string> known = known_features(target.arch);
            const auto first = std::find_first_of(known.begin(), known.end(), family->features.begin(), family->features.end());
            const std::string with = first == known.end() ? "" : "generate for '" + name_with(target, {*first}) + "', or ";
            const std::string needed = family->scope == ExecutionScope::thread ? join(family->features, " or ") : "tensor cores by CUDA";
            refuse("the instruction family " + family->name + " needs " + needed + ", which target '" + target.name +
                   "' has not; its families are " + join(own) + "; " + with + "delete the knob (null).");
        }
        const Stage *stage = a.find_stage(name);
        auto *reduce = stage ? std::get_if<Reduce>(&stage->body) : nullptr;
        if (family->takes) {
            // Where it is another sum than the fold's own, the fold was rewritten.
            if (keeps_bits(*family) && (!reduce || !is_sum_of_products(reduce->monoid)))
                refuse("the instruction family " + family->name + " " + family->says +
                       "; this stage is no such sum. Delete the knob (null).");
            continue;
        }
        if (!reduce || scatters(*stage) || reduce->where.defined() || !operands_for(*family, *reduce))
            refuse("the instruction family " + family->name + " sums products of " + name_of(family->first) + " and " +
                   name_of(family->second) + " elements in " + name_of(family->accumulator) +
                   ", each cast once and unconditionally; this stage is no such sum.");
        const Numerics &policy = policy_of(declared, name);
        if (!family->is_exact && policy.products != Products::machine)
            refuse(
                "what the instruction family " + family->name +
                " rounds is not published, so its bits are those of the machine, and the policy '" + policy.name +
                "' promises bits: its products are 'exact'. Delete the knob (null), or declare the algorithm with a policy whose products "
                "are 'machine'.");
        if (has_fragments(*family)) check_fragments(*family, *stage, k, refuse);
        if (family->flushes && policy.denormals == Denormals::gradual)
            refuse(
                "the instruction family " + family->name + " takes subnormal numbers for zeros, and the policy '" + policy.name +
                "' has denormals 'gradual'. Delete the knob (null), or declare the algorithm with a policy that has 'any' or 'flushed'.");
    }
}

}  // namespace tessera

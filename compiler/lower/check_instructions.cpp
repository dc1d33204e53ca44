#include "compiler/lower/check_instructions.h"

#include <algorithm>

#include "compiler/instructions/families.h"
#include "support/text/error.h"

namespace tessera {

// A callee has its own.
static const Numerics &policy_of(const Algorithm &declared, const std::string &stage) {
    for (const Call &call : declared.calls())
        if (!call.scope.empty() && stage.starts_with(call.scope + ".")) return policy_of(*call.callee, stage.substr(call.scope.size() + 1));
    return declared.numerics;
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
            refuse("the instruction family " + family->name + " needs " + join(family->features, " or ") + ", which target '" +
                   target.name + "' has not; its families are " + join(own) + "; " + with + "delete the knob (null).");
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
        if (const Numerics &policy = policy_of(declared, name); family->flushes && policy.denormals == Denormals::gradual)
            refuse(
                "the instruction family " + family->name + " takes subnormal numbers for zeros, and the policy '" + policy.name +
                "' has denormals 'gradual'. Delete the knob (null), or declare the algorithm with a policy that has 'any' or 'flushed'.");
    }
}

}  // namespace tessera

// What decides the bits of a kernel's results: the reduction trees of its variants.
#pragma once
#include <string>
#include <vector>

#include "compiler/lower/reduction_trees.h"
#include "generators/choose/choice.h"

namespace tessera {

struct VariantTrees {
    std::vector<Condition> when;  // as of the kernel's variants; the last has none
    ReductionTrees trees;
};

struct KernelBits {
    // For one tree or several with their conditions: equal for two kernels of one algorithm only if they give equal bits wherever both
    // may be called. Neither the target nor what is fixed is part of it.
    std::string hash;
    // Without those that have the trees of all that follow.
    std::vector<VariantTrees> variants;
    // Dynamic dims on whose extents no bits depend, whichever variant runs: each row of a batch is what it would be in a batch of one.
    std::vector<std::string> batch_invariant;
};

// `bound`: with the dims that the kernel fixes. UserError as reduction_trees.
KernelBits bits_of(const Algorithm &declared, const Algorithm &bound, const ResolvedSchedule &schedule, const Target &target);
KernelBits bits_of(const KernelRequest &request, const Choice &choice);

// For people: the hash, the trees of each variant, and the dims on which nothing depends.
std::string to_text(const KernelBits &bits);
// "" for equal hashes. Otherwise the folds whose trees differ, each with those of both kernels, "-" the first's and "+" the second's.
std::string difference_text(const KernelBits &a, const KernelBits &b);

}  // namespace tessera

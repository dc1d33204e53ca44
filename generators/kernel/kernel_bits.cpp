#include "generators/kernel/kernel_bits.h"

#include <algorithm>

#include "algorithms/transform/given_extents.h"
#include "compiler/compile/variants.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

// Where the extent of the dim decides which variant runs.
static bool is_asked_for(const std::string &dim, const std::vector<VariantTrees> &variants, const Algorithm &bound) {
    auto root = [&](const std::string &name) { return root_of(bound, bound.dim(name)).name; };
    return std::any_of(variants.begin(), variants.end(), [&](const VariantTrees &v) {
        return std::any_of(v.when.begin(), v.when.end(),
                           [&](const Condition &c) { return bound.find_dim(c.dim) && root(c.dim) == root(dim); });
    });
}

static std::string hash_of(const std::vector<VariantTrees> &variants) {
    if (variants.size() == 1) return variants[0].trees.hash;
    std::string all;
    for (const VariantTrees &v : variants) all += condition_text(v.when) + " " + v.trees.hash + "\n";
    return sha256(all);
}

KernelBits bits_of(const Algorithm &declared, const Algorithm &bound, const ResolvedSchedule &schedule, const Target &target) {
    KernelBits bits;
    for (const ApplyingVariant &v : applying_variants(schedule, bound, target))
        bits.variants.push_back({v.when, reduction_trees(declared, *v.stages)});
    std::vector<VariantTrees> &all = bits.variants;
    while (all.size() > 1 && all[all.size() - 2].trees.hash == all.back().trees.hash) all.erase(all.end() - 2);
    bits.hash = hash_of(all);
    for (const Dim &d : bound.dims) {
        const bool is_invariant = d.kind == DimKind::symbolic && std::all_of(all.begin(), all.end(), [&](const VariantTrees &v) {
                                      return v.trees.invariant.count(d.name) > 0;
                                  });
        if (is_invariant && !is_asked_for(d.name, all, bound)) bits.batch_invariant.push_back(d.name);
    }
    return bits;
}

KernelBits bits_of(const KernelRequest &request, const Choice &choice) {
    return bits_of(request.declared, request.bound, choice.applied.resolved, request.target);
}

static std::string lines_of(const std::vector<std::string> &lines, const std::string &before) {
    std::string text;
    for (const std::string &line : lines) text += before + line + "\n";
    return text;
}

std::string to_text(const KernelBits &bits) {
    std::string text = "bits " + bits.hash + "\n";
    for (const VariantTrees &v : bits.variants) {
        if (bits.variants.size() > 1) text += "# " + condition_text(v.when) + ": " + v.trees.hash + "\n";
        for (const FoldTree &fold : v.trees.folds) text += lines_of(fold.steps, "  ");
        if (v.trees.folds.empty()) text += "  nothing is folded\n";
    }
    text += bits.batch_invariant.empty() ? "no dynamic dim is batch-invariant\n"
                                         : "batch-invariant: no bits depend on how long " + join(bits.batch_invariant, " or ") + " is\n";
    return text;
}

static const FoldTree *find_fold(const ReductionTrees &trees, const std::string &stage) {
    auto found = std::find_if(trees.folds.begin(), trees.folds.end(), [&](const FoldTree &f) { return f.stage == stage; });
    return found == trees.folds.end() ? nullptr : &*found;
}

static std::string difference_text(const ReductionTrees &a, const ReductionTrees &b) {
    std::string text;
    for (const FoldTree &fold : a.folds) {
        const FoldTree *other = find_fold(b, fold.stage);
        if (other && *other == fold) continue;
        text += "  " + fold.stage + "\n" + lines_of(fold.steps, "    - ");
        if (other) text += lines_of(other->steps, "    + ");
    }
    for (const FoldTree &fold : b.folds)
        if (!find_fold(a, fold.stage)) text += "  " + fold.stage + "\n" + lines_of(fold.steps, "    + ");
    return text;
}

std::string difference_text(const KernelBits &a, const KernelBits &b) {
    if (a.hash == b.hash) return "";
    if (a.variants.size() == 1 && b.variants.size() == 1) {
        const std::string text = difference_text(a.variants[0].trees, b.variants[0].trees);
        return text.empty() ? "  in what the algorithm computes\n" : text;
    }
    // Each pair that may run at the same extents, where both have the condition, or one of them has none.
    std::string text;
    for (const VariantTrees &v : a.variants)
        for (const VariantTrees &w : b.variants) {
            const bool may_meet = v.when == w.when || v.when.empty() || w.when.empty();
            if (!may_meet || v.trees.hash == w.trees.hash) continue;
            text += "  where " + condition_text(v.when) + " of the first, " + condition_text(w.when) + " of the second\n";
            text += difference_text(v.trees, w.trees);
        }
    return text.empty() ? "  in the conditions of their variants\n" : text;
}

}  // namespace tessera

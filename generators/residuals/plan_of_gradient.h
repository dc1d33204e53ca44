// Which residuals a gradient keeps within a budget of workspace: plans by minimum cut (costmodel/plan), for each size of groups of the
// rounds of calls that repeat. A plan fits where the workspace does that the lowered program asks for, at stated extents.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "generators/choose/preparation_observer.h"
#include "generators/registry/options.h"
#include "generators/registry/registry.h"

namespace tessera {

struct PlannedResidual {
    std::string stage;
    double bytes = 0, seconds = 0;  // of its results, all rounds that are kept at a time; of its copies, all rounds
    bool is_saved = false;
    bool is_again = false;  // computed again; neither: nothing of the backward part needs it
};

struct GradientPlan {
    std::vector<PlannedResidual> stages;    // in the order of the forward part
    std::map<std::string, int64_t> groups;  // rounds of a group, by call
    double seconds_again = 0;               // that are added by what is computed again, groups included
    double seconds_most = 0;                // the same where nothing is saved, in the same groups
    int64_t peak = 0;                       // bytes of workspace, with one thread
    int64_t peak_of_all = 0;                // with everything saved, without groups
    int64_t peak_of_none = 0;               // with everything computed again, in the same groups
    size_t lowered = 0;                     // programs of which the peak was asked

    // The words of it for grad or value_and_grad ("layers=8", "layers.each.acc=save", "*=recompute"), and the file that says the same
    // (transforms.h).
    std::vector<std::string> words() const;
    std::string text() const;
    std::vector<std::string> saved() const;  // stages
};

// `options.transforms` end with grad or value_and_grad, without residuals. `extents` are those of dims that are not fixed. The peak is
// asked of plain loops first, where every stage has a buffer of its own, and of the schedule that the kernel takes for what remains.
// UserErrors of transformed, all_extents and prepare; residuals.gradient where the transforms end with something else or with residuals;
// residuals.budget, with the least peak, where no plan fits.
GradientPlan plan_of_gradient(const Registry &registry, const KernelOptions &options, const Extents &extents, int64_t budget,
                              const PreparationObserver &observer = {});

// The workspace of the kernel in one thread, at extents of dims that are not fixed.
int64_t peak_of(const Registry &registry, const KernelOptions &options, const Extents &extents, const PreparationObserver &observer = {});

}  // namespace tessera

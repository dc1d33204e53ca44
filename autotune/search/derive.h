// A schedule for an algorithm that nobody tuned: the best that the cost model finds in its space. Nothing is measured. The result is a
// function of algorithm, target, workloads and model, and of nothing on the machine that derives it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autotune/search/search.h"
#include "autotune/search/tuned_schedule.h"

namespace tessera {

// The version of the rules by which a derived schedule follows from its task: what was derived by others is derived again.
constexpr int derivation_version = 12;

// Workloads that a kernel may meet, and where a schedule of its own pays: `when` are conditions on extents; none for what the schedule is
// made for as a whole.
struct ExpectedWorkload {
    Workload workload;
    std::vector<Condition> when;
};

// What a kernel is expected to run with. As a whole: every symbolic dim at a middle extent; at one that no tile divides, on several
// threads; large; at some tens. With conditions: all small; each dim at 1 and at 5, the others as they were. Windows are of 3 elements.
// Dims of `known` have these extents in all workloads. The others' are legal by constraints, and the work of each workload is bounded. At
// most `max_workloads`. UserError as all_extents, of `known`.
constexpr size_t max_workloads = 11;
std::vector<ExpectedWorkload> expected_workloads(const Algorithm &algorithm, const Extents &known = {});

struct Derivation {
    KnobsByStage stages;
    std::vector<TunedVariant> variants;  // at most 3, the most special first
    size_t candidates = 0;               // that were judged
    int64_t work = 0;                    // of all searches (Search::work)
};

// The schedule with the best mean score over the workloads without conditions, and variants where another one is clearly better at a
// workload with conditions. Every program of it is proved. For a GPU, whose programs no model knows, the space's most likely schedule.
// `algorithm` has its fixed dims bound. Of an algorithm whose candidates take much work fewer are judged, so that the time is bounded.
// `effort` says which share of the candidates is judged, for what matters little. `progress` is told now and then how many were judged so
// far.
using DeriveProgress = std::function<void(size_t candidates)>;
Derivation derive(const Algorithm &algorithm, const Target &target, const std::vector<ExpectedWorkload> &workloads, CostModel &model,
                  const DeriveProgress &progress = {}, double effort = 1);

// The most points that a stage of the algorithm visits, of its dims and its reduced dims together.
double points_of(const Algorithm &algorithm, const Extents &extents);

}  // namespace tessera

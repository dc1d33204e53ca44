// Knobs as an artifact: what people review.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedules/artifact/artifact.h"
#include "schedules/artifact/fields.h"
#include "schedules/artifact/library.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// The stages' document, as artifacts have it: canonical, one text for one value.
nlohmann::json document_of(const KnobsByStage &stages);

// The inverse, of a document that `document_of` gave. UserErrors of read.h.
KnobsByStage knobs_from(const nlohmann::json &stages);

// A schedule that resolves to these stages, with no variants. As a child of `parent` where there is one, it states only what
// differs; where it shares little with it, it states everything, extends nothing and uses no schedule of a callee.
Schedule tuned_schedule(const std::string &name, const KnobsByStage &stages, const std::optional<Schedule> &parent, const Library &library,
                        const std::vector<std::string> &requires_features);
// The same where the parent's merged fields are known, with what its callees' schedules state (callee_schedules.h).
Schedule tuned_schedule(const std::string &name, const KnobsByStage &stages, const Schedule &parent, const Fields &inherited,
                        const std::vector<std::string> &requires_features);

// Stages that hold in place of a schedule's own where all conditions do.
struct TunedVariant {
    std::vector<Condition> when;
    KnobsByStage stages;
};
// The same schedule, which resolves to `stages`, with these variants and no others: each states in what it differs from `stages`.
Schedule with_variants(const Schedule &schedule, const KnobsByStage &stages, const std::vector<TunedVariant> &variants);

// The knobs in which two sets of stages differ, "y.micro": what an ablation takes back one by one.
std::vector<std::pair<std::string, std::string>> differing_knobs(const KnobsByStage &a, const KnobsByStage &b);
// `stages` with one knob of one stage as `from` has it.
KnobsByStage with_knob_of(const KnobsByStage &stages, const KnobsByStage &from, const std::string &stage, const std::string &knob);

}  // namespace tessera

#include "generators/recorded_features.h"

#include <nlohmann/json.hpp>

#include "algorithms/error.h"
#include "algorithms/hash.h"
#include "autotune/metric.h"
#include "autotune/tuned_schedule.h"
#include "compiler/lower.h"
#include "generators/prepare.h"

namespace tessera {

// UserError where the generator has it not, or not as it was when it was measured.
static Algorithm algorithm_in(const Registry &registry, const nlohmann::json &document) {
    const std::string name = document.at("algorithm");
    const Algorithm declared = registry.make(name, numerics_named(document.at("numerics")), document.at("options").get<Options>());
    Algorithm bound = bind_extents(declared, document.at("fixed").get<DimExtents>());
    if (document.at("semantic") != semantic_hash(bound)) throw UserError("records.algorithm", "the algorithm '" + name + "' is not the one that was measured");
    return bound;
}

static Target target_in(const nlohmann::json &document) {
    if (document.contains("target_file")) throw UserError("records.target", "their target is a file, which is not recorded");
    Target target = target_named(document.at("target"));
    if (auto caches = document.find("caches"); caches != document.end())
        target.l1_bytes = caches->at(0), target.l2_bytes = caches->at(1), target.l3_bytes = caches->at(2);
    return target;
}

// What `task_of` (tune_task.h) and the campaign wrote of it. Throws UserErrors, and nlohmann's exceptions where it is none of theirs.
static SearchSpace space_in(const Registry &registry, const nlohmann::json &document) {
    SearchSpace space;
    space.algorithm = algorithm_in(registry, document), space.target = target_in(document), space.extents = document.at("extents").get<DimExtents>();
    if (document.value("metric", "") != name_of(Metric::throughput)) space.threads = document.at("threads");
    if (document.contains("prepack")) space.ahead = document["prepack"].get<std::vector<std::string>>();
    return space;
}

RecordedFeatures::RecordedFeatures(const Registry &registry, const CampaignRow &campaign) : model_(roofline_model()) {
    try {
        space_ = space_in(registry, nlohmann::json::parse(campaign.document));
    } catch (const UserError &error) {
        problem_ = error.message();
        return;
    } catch (const nlohmann::json::exception &) {
        problem_ = "what was tuned is not stated as this version states it";
        return;
    }
    search_ = std::make_unique<Search>(space_, SearchOptions{}, *model_);
}

RecordedFeatures::~RecordedFeatures() = default;

std::optional<Featured> RecordedFeatures::of(const Trial &trial) const {
    try {
        const std::optional<Candidate> made = search_->candidate_of(knobs_from(nlohmann::json::parse(trial.schedule)), trial.origin);
        if (made && made->resolved == trial.resolved) return made->features;
    } catch (const UserError &) {  // a schedule of another version's
    } catch (const nlohmann::json::exception &) {
    }
    return {};
}

}  // namespace tessera

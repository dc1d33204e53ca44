#include "generators/tune/recorded_features.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "algorithms/text/hash.h"
#include "autotune/measure/metric.h"
#include "autotune/search/tuned_schedule.h"
#include "compiler/lower/lower.h"
#include "generators/kernel/prepare.h"
#include "schedules/knobs/former_names.h"
#include "support/files/json_parse.h"
#include "support/text/error.h"

namespace tessera {

// UserError where the generator has it not, or not as it was when it was measured.
static Algorithm algorithm_in(const Registry &registry, const nlohmann::json &document) {
    const std::string name = document.at("algorithm");
    const Algorithm declared = registry.make(name, registry.numerics(document.at("numerics")), document.at("options").get<Options>());
    Algorithm bound = bind_extents(declared, document.at("fixed").get<Extents>());
    if (document.at("semantic") != semantic_hash(bound))
        throw UserError("records.algorithm", "the algorithm '" + name + "' is not the one that was measured");
    return bound;
}

// A whole number as campaigns record it.
static int64_t count_in(const nlohmann::json &value, int64_t most) {
    if (!value.is_number_integer() || value < 1 || value > most)
        throw UserError("records.document", "what was tuned has a number that no machine can have");
    return value;
}

// By name, with the caches of the machine that measured.
static Target target_in(const nlohmann::json &document) {
    if (document.contains("target_file")) throw UserError("records.target", "their target is a file, which is not recorded");
    const std::string name = current_target_name(document.at("target")), base = name.substr(0, name.find('+'));
    const std::vector<std::string> known = target_names();
    if (base == "host" || std::find(known.begin(), known.end(), base) == known.end())
        throw UserError("records.target", "this version has no target '" + quotable(name) + "'");
    Target target = target_named(name);
    if (auto caches = document.find("cache_bytes"); caches != document.end()) {
        constexpr int64_t most = int64_t{1} << 40;
        target.l1_bytes = count_in(caches->at(0), most), target.l2_bytes = count_in(caches->at(1), most),
        target.l3_bytes = count_in(caches->at(2), most);
    }
    return target;
}

// What `task_of` (tune_task.h) and the campaign wrote of it. Throws UserErrors, and nlohmann's exceptions where it is none of theirs.
static SearchSpace space_in(const Registry &registry, const nlohmann::json &document) {
    if (document.value("caches", "") == "cold")
        throw UserError("records.cold", "they were measured with cold caches, which features do not tell");
    SearchSpace space;
    space.algorithm = algorithm_in(registry, document), space.target = target_in(document),
    space.extents = document.at("extents").get<Extents>();
    if (document.value("metric", "") != name_of(Metric::throughput))
        space.threads = static_cast<int>(count_in(document.at("threads"), 4096));
    return space;
}

RecordedFeatures::RecordedFeatures(const Registry &registry, const CampaignRow &campaign) : model_(roofline_model()) {
    try {
        space_ = space_in(registry, parse_json(campaign.document, "its document"));
        search_ = std::make_unique<Search>(space_, SearchOptions{}, *model_);
    } catch (const UserError &error) { problem_ = error.message(); } catch (const nlohmann::json::exception &) {
        problem_ = "what was tuned is not stated as this version states it";
    }
}

RecordedFeatures::~RecordedFeatures() = default;

std::optional<Featured> RecordedFeatures::of(const Trial &trial) const {
    try {
        const std::optional<Candidate> made = search_->candidate_of(knobs_from(parse_json(trial.schedule, "its schedule")), trial.origin);
        if (made && made->resolved == trial.resolved) return made->features;
    } catch (const UserError &) {  // a schedule of another version's
    } catch (const nlohmann::json::exception &) {}
    return {};
}

}  // namespace tessera

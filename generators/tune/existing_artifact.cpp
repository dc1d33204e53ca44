#include "generators/tune/existing_artifact.h"

#include <algorithm>

#include "compiler/lower/lower.h"
#include "generators/choose/tuning_record.h"
#include "generators/kernel/program_record.h"
#include "support/files/json_reader.h"
#include "support/text/error.h"

namespace tessera {

using nlohmann::json;

static bool is_for(const TuneRun &run, const KernelTask &task, const TuningRecord &record) {
    KernelTask own = task_of(run.prepared.request, run.extents, run.options.threads);
    if (record.shapes.empty() ? own.extents != task.extents
                              : std::find(record.shapes.begin(), record.shapes.end(), own.extents) == record.shapes.end())
        return false;
    own.extents = task.extents;
    const CampaignOptions &campaign = run.options.campaign;
    return own == task && record.goal.metric == campaign.goal.metric && record.is_cold == campaign.measure.cold;
}

// What `measured` says of the shape, with what it says once for all of several; nothing where nobody measured this one.
static std::optional<json> choice_of(const Schedule &schedule, const Extents &extents) {
    const json measured = schedule.document()["measured"];
    if (!measured.contains("shapes")) return measured;
    for (json one : measured["shapes"]) {
        if (one["extents"] != json(extents)) continue;
        for (const char *common : {"machine", "versions"})
            if (!one.contains(common) && measured.contains(common)) one[common] = measured[common];
        return one;
    }
    return std::nullopt;
}

// Whether it still is the program that its figures are of.
static bool is_as_measured(const PreparedKernel &with, const TuneRun &run, const Schedule &schedule) {
    Judge judge(*run.registry, "roofline");  // whose predictions nobody asks for
    return provenance_of(with, run.extents, run.options.threads, judge).resolved == provenance_of(schedule)->resolved;
}

// Speeds over one base, on one machine, by one version of Tessera.
static bool is_known_better(const TuneRun &run, const CampaignResult &found, const Schedule &schedule, const json &existing) {
    if (!found.improved || !is_speed(run.options.campaign.goal.metric)) return false;
    const Schedule *base = named_base(run);
    if (existing.value("machine", json()) != run.task.identity["machine"]["processor"] ||
        existing.value("versions", json()) != run.task.identity["versions"])
        return false;
    const JsonReader over = JsonReader(existing, "schedule '" + schedule.name() + "'").at("over");
    if (over.at("hash").text() != (base ? base->hash() : "")) return false;
    const std::vector<JsonReader> speed = over.at("speed").items();
    return speed.size() == 3 && found.measurement.lower > speed[2].real(0, 1e9);
}

std::optional<ExistingArtifact> existing_artifact(const TuneRun &run, const std::optional<CampaignResult> &result) {
    const std::filesystem::path place = artifact_place(run);
    std::error_code error;
    if (!std::filesystem::is_regular_file(place, error)) return std::nullopt;
    try {
        const Schedule schedule = read_schedule(place);
        const auto record = tuning_record_of(schedule);
        if (!record || record->is_predicted || !is_for(run, provenance_of(schedule)->task, *record)) return std::nullopt;
        const auto choice = choice_of(schedule, run.extents);
        if (!choice) return std::nullopt;
        const PreparedKernel with = prepared_with(schedule, run);
        if (!is_as_measured(with, run, schedule)) return std::nullopt;
        ExistingArtifact existing{knobs_for(with.request, with.choice, all_extents(with.request.bound, run.extents)), "", *choice};
        existing.resolved = resolved_hash(lower(run.task.space.algorithm, existing.stages, run.task.space.target));
        const auto is_it = [&](const Trial &t) { return t.resolved == existing.resolved; };
        if (!result || run.options.deterministic) return existing;
        if (result->confirmed && std::any_of(result->trials.begin(), result->trials.end(), is_it)) return std::nullopt;
        return is_known_better(run, *result, schedule, *choice) ? std::nullopt : std::optional(existing);
    } catch (const UserError &) {  // no longer a schedule of this kernel's
        return std::nullopt;
    }
}

}  // namespace tessera

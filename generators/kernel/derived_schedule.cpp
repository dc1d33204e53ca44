#include "generators/kernel/derived_schedule.h"

#include <chrono>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "algorithms/text/hash.h"
#include "algorithms/transform/bind_extents.h"
#include "autotune/search/derive.h"
#include "costmodel/model/counted_samples.h"
#include "generators/kernel/applied_schedule.h"
#include "generators/kernel/lower_variants.h"
#include "generators/kernel/model_choice.h"
#include "generators/kernel/versions.h"
#include "schedules/artifact/library.h"
#include "schedules/target/target_file.h"
#include "support/files/json_text.h"
#include "support/files/output_folder.h"
#include "support/text/error.h"
#include "support/text/sha256.h"

namespace tessera {

namespace fs = std::filesystem;

static std::optional<fs::path> cache_folder() {
    if (const char *named = std::getenv("TESSERA_CACHE")) return *named ? std::optional<fs::path>(named) : std::nullopt;
    if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return fs::path(cache) / "tessera";
    if (const char *home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "tessera";
    return std::nullopt;
}

// The hash of all that the schedule depends on.
static std::string key_of(const Registry &registry, const Algorithm &bound, const Extents &fixed, const Extents &extents,
                          const Target &target) {
    const nlohmann::ordered_json all = {{"algorithm", bound.name},
                                        {"semantic", semantic_hash(bound)},
                                        {"policy", text_of(bound.numerics)},
                                        {"surface", surface_hash(bound)},
                                        {"fixed", fixed},
                                        {"extents", extents},
                                        {"target", target_text(target)},
                                        {"model", model_hash(registry, "", target)},
                                        {"features", feature_hash()},
                                        {"search", search_version},
                                        {"derivation", derivation_version},
                                        {"tessera", tessera_version()}};
    return sha256(json_text(all)).substr(std::string_view("sha256:").size(), 32);
}

// Whether every variant lowers. That the programs are safe is known of each, and whoever prepares a kernel verifies it.
static bool is_usable(const Schedule &schedule, const Algorithm &bound, const Target &target) {
    try {
        lower_variants(bound.name, applied_schedule(schedule, bound, {}, Library(), {}).resolved, bound, target);
        return true;
    } catch (const UserError &) { return false; }
}

static std::optional<Schedule> kept_schedule(const std::optional<fs::path> &file, const Algorithm &bound, const Target &target) {
    std::error_code error;
    if (!file || !fs::is_regular_file(*file, error)) return std::nullopt;
    try {
        const Schedule schedule = read_schedule(*file);
        return is_usable(schedule, bound, target) ? std::optional(schedule) : std::nullopt;
    } catch (const UserError &) { return std::nullopt; }
}

static bool keep(const Schedule &schedule, const fs::path &file) {
    try {
        const OutputFolder folder(file.parent_path());
        folder.write(file.filename().string(), schedule.text());
        folder.publish(file.filename().string());
        return true;
    } catch (const UserError &) { return false; }
}

static Schedule schedule_of(const Derivation &derived, const Algorithm &declared, const Algorithm &bound, const Target &target) {
    const std::string name = declared.name + "/" + declared.numerics.name + "/" + target.name;
    KnobsByStage stages = derived.stages;
    for (const Call &call : declared.calls()) stages[call.scope].use = "none";  // what is stated is all
    const Schedule general =
        tuned_schedule(name, stages, {}, Library(), target.features).for_algorithm(declared.name, surface_hash(declared));
    std::vector<TunedVariant> variants = derived.variants;
    for (TunedVariant &v : variants)
        for (const Call &call : declared.calls()) v.stages[call.scope].use = "none";
    const Schedule all = with_variants(general, stages, variants);
    if (is_usable(all, bound, target)) return all;
    return is_usable(general, bound, target) ? general : Schedule(name).for_algorithm(declared.name, surface_hash(declared));
}

DerivedSchedule derived_schedule(const Registry &registry, const Algorithm &declared, const Extents &fixed, const Extents &extents,
                                 const Target &target) {
    const Algorithm bound = bind_extents(declared, fixed);
    std::optional<fs::path> file = cache_folder();
    if (file) *file /= key_of(registry, bound, fixed, extents, target) + ".json";
    if (const auto kept = kept_schedule(file, bound, target)) return {*kept, 0, 0, file};
    const auto start = std::chrono::steady_clock::now();
    const auto model = model_for(registry, "", target);
    const Derivation derived = derive(bound, target, expected_workloads(bound, extents), *model);
    const Schedule schedule = schedule_of(derived, declared, bound, target);
    if (file && !keep(schedule, *file)) file.reset();
    return {schedule, derived.candidates, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), file};
}

}  // namespace tessera

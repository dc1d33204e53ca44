#include "generators/choose/derived_schedule.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "algorithms/text/hash.h"
#include "algorithms/transform/bind_extents.h"
#include "autotune/search/derive.h"
#include "costmodel/model/counted_samples.h"
#include "generators/choose/model_choice.h"
#include "generators/choose/program_schedule.h"
#include "generators/registry/versions.h"
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
                          const Target &target, const std::vector<Schedule> &inherited) {
    nlohmann::ordered_json all = {{"algorithm", bound.name},
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
    for (const Schedule &s : inherited) all["inherits"].push_back(s.hash());
    return sha256(json_text(all)).substr(std::string_view("sha256:").size(), 32);
}

using Made = std::shared_ptr<const MadeKernel>;

// Nothing where it makes no kernel.
static Made made_of(const Schedule &schedule, const KernelRequest &request, Chooser &chooser) {
    try {
        return std::make_shared<const MadeKernel>(chooser.make(schedule, request.declared, request.fixed));
    } catch (const UserError &) { return nullptr; }
}

struct Usable {
    Schedule schedule = Schedule("none");
    Made made;
};

static std::optional<Usable> kept_schedule(const std::optional<fs::path> &file, const KernelRequest &request, Chooser &chooser) {
    std::error_code error;
    if (!file || !fs::is_regular_file(*file, error)) return std::nullopt;
    try {
        const Schedule schedule = read_schedule(*file);
        if (Made made = made_of(schedule, request, chooser)) return Usable{schedule, std::move(made)};
    } catch (const UserError &) {  // somebody wrote into the folder
    }
    return std::nullopt;
}

static bool keep(const Schedule &schedule, const fs::path &file) {
    try {
        const OutputFolder folder(file.parent_path());
        folder.write(file.filename().string(), schedule.text());
        folder.publish(file.filename().string());
        return true;
    } catch (const UserError &) { return false; }
}

std::string derived_name(const KernelRequest &request, const Target &target) {
    return request.declared.name + "/" + request.declared.numerics.name + "/" + target.name;
}

static Usable schedule_of(const Derivation &derived, const KernelRequest &request, const Target &target, Chooser &chooser) {
    const Algorithm &declared = request.declared;
    const std::string name = derived_name(request, target);
    KnobsByStage stages = derived.stages;
    for (const Call &call : declared.calls()) stages[call.scope].use = "none";  // what is stated is all
    const Schedule general =
        tuned_schedule(name, stages, {}, Library(), target.features).for_algorithm(declared.name, surface_hash(declared));
    std::vector<TunedVariant> variants = derived.variants;
    for (TunedVariant &v : variants)
        for (const Call &call : declared.calls()) v.stages[call.scope].use = "none";
    const Schedule all = with_variants(general, stages, variants);
    if (Made made = made_of(all, request, chooser)) return {all, std::move(made)};
    if (Made made = made_of(general, request, chooser)) return {general, std::move(made)};
    const Schedule plain = Schedule(name).for_algorithm(declared.name, surface_hash(declared));
    return {plain, std::make_shared<const MadeKernel>(chooser.make(plain, declared, request.fixed))};
}

static bool has_uses(const Schedule &schedule, const KernelRequest &request) {
    const nlohmann::json stages = schedule.document().value("stages", nlohmann::json::object());
    return request.made_of && std::any_of(request.made_of->roles.begin(), request.made_of->roles.end(), [&](const StageRole &role) {
               return stages.contains(role.stage) && stages[role.stage].contains("use");
           });
}

// The stages that it fits: all of them, or those that it fits alone.
static UsesByStage fitting_uses(const Schedule &inherits, const KernelRequest &request, Chooser &chooser) {
    const auto fits = [&](const UsesByStage &uses) {
        Schedule alone("inherited");
        for (const auto &[stage, schedule] : uses) alone = alone.stage(stage, StageKnobs().use(schedule));
        return made_of(alone, request, chooser) != nullptr;
    };
    UsesByStage all;
    for (const StageRole &role : request.made_of->roles) all[role.stage] = inherits.name();
    if (fits(all)) return all;
    UsesByStage some;
    for (const auto &[stage, schedule] : all)
        if (UsesByStage more = some; more[stage] = schedule, fits(more)) some = more;
    return some;
}

std::optional<Schedule> inherited_schedule(const Schedule &inherits, const KernelRequest &request, Chooser &chooser) {
    const UsesByStage uses = fitting_uses(inherits, request, chooser);
    if (uses.empty()) return std::nullopt;
    Schedule made = Schedule(derived_name(request, request.target)).for_algorithm(request.declared.name, surface_hash(request.declared));
    for (const auto &[stage, schedule] : uses) made = made.stage(stage, StageKnobs().use(schedule));
    return made;
}

DerivedSchedule derived_schedule(const Registry &registry, const KernelRequest &request, const Extents &extents, const Target &target,
                                 Chooser &chooser, const PreparationObserver &observer, const std::optional<Schedule> &inherits) {
    const Algorithm &bound = request.bound;
    std::optional<fs::path> file = cache_folder();
    const std::vector<Schedule> inherited = inherits ? chooser.library().ancestry(*inherits) : std::vector<Schedule>();
    if (file) *file /= key_of(registry, bound, request.fixed, extents, target, inherited) + ".json";
    if (auto kept = kept_schedule(file, request, chooser))
        return {kept->schedule, std::move(kept->made), 0, 0, file, has_uses(kept->schedule, request)};
    const auto start = std::chrono::steady_clock::now();
    const auto model = model_for(registry, "", target);
    const Target seen = as_shipped_model_sees(target);
    const auto progress = [&](size_t candidates) {
        if (observer.derives) observer.derives(bound.name, candidates);
    };
    progress(0);
    Usable usable;
    size_t candidates = 0;
    const UsesByStage uses = inherits && !target.is_gpu() ? fitting_uses(*inherits, request, chooser) : UsesByStage();
    if (!uses.empty() || (!request.declared.calls().empty() && !target.is_gpu())) {
        const ProgramDerivation program = program_schedule(request, extents, seen, *model, chooser, progress, uses);
        candidates = program.candidates;
        usable = {program.schedule, made_of(program.schedule, request, chooser)};
        if (!usable.made && program.without_folds) usable = {*program.without_folds, made_of(*program.without_folds, request, chooser)};
    }
    if (!usable.made) {
        const Derivation derived = derive(bound, seen, expected_workloads(bound, extents), *model, progress);
        candidates += derived.candidates;
        usable = schedule_of(derived, request, target, chooser);
    }
    if (file && !keep(usable.schedule, *file)) file.reset();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const bool inherits_any = has_uses(usable.schedule, request);
    return {usable.schedule, std::move(usable.made), candidates, seconds, file, inherits_any};
}

}  // namespace tessera

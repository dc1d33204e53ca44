#include "generators/choose/best_match.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "algorithms/text/hash.h"
#include "algorithms/transform/bind_extents.h"
#include "generators/choose/tuning_record.h"
#include "schedules/check/check.h"
#include "schedules/target/nearest_targets.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

const char *name_of(Match::How how) {
    switch (how) {
    case Match::How::named: return "named";
    case Match::How::exact: return "exact";
    case Match::How::nearest: return "nearest";
    case Match::How::family: return "family";
    case Match::How::inherited: return "inherited";
    case Match::How::derived: return "derived";
    case Match::How::none: return "none";
    }
    return "?";
}

namespace {

constexpr int64_t max_apart = 4;

// What the artifact was tuned with, of the dims that the kernel fixes.
Extents tuned_with(const KernelTask &task, const Extents &fixed) {
    Extents known;
    for (const Extents *all : {&task.fixed, &task.extents})
        for (const auto &[dim, extent] : *all)
            if (fixed.count(dim)) known.emplace(dim, extent);
    return known;
}

// Dims that the artifact's kernel fixes and this one does not.
std::vector<std::string> fixed_there_alone(const KernelTask &task, const Extents &fixed) {
    std::vector<std::string> dims;
    for (const auto &[dim, extent] : task.fixed)
        if (!fixed.count(dim)) dims.push_back(dim + "=" + std::to_string(extent));
    return dims;
}

bool is_near(const KernelTask &task, const Extents &fixed) {
    const Extents known = tuned_with(task, fixed);
    return known.size() == fixed.size() && std::all_of(fixed.begin(), fixed.end(), [&](const auto &dim) {
               const int64_t there = known.at(dim.first);
               return dim.second <= there * max_apart && there <= dim.second * max_apart;
           });
}

struct Anchor {
    Schedule schedule;
    KernelTask task;
    bool is_predicted = false;
    double distance = 0, dynamic_points = 1;
    bool is_base = false;     // made for the policy without its words
    bool fixes_less = false;  // than the kernel
    bool operator<(const Anchor &other) const {
        return std::make_tuple(is_predicted, distance, is_base, fixes_less, task.threads, -dynamic_points, schedule.name()) <
               std::make_tuple(other.is_predicted, other.distance, other.is_base, other.fixes_less, other.task.threads,
                               -other.dynamic_points, other.schedule.name());
    }
};

// What was tuned for this algorithm on this target: the measured first, nearest shape first. `passed_over` gets others that come near, with
// why they do not apply.
std::vector<Anchor> anchors(const Algorithm &declared, const Options &options, const Extents &fixed, const std::string &target,
                            const Library &library, const std::vector<std::string> &names, std::vector<std::string> &passed_over) {
    const std::string base = base_name(declared.numerics.name), own = declared.numerics.name;
    const auto folder_of = [&](const std::string &policy) { return declared.name + "/" + policy + "/" + target + "/"; };
    std::vector<Anchor> all;
    size_t of_fixed_dims = 0;
    std::string first_of_them;
    for (const std::string &name : names) {
        if (!name.starts_with(folder_of(own)) && !name.starts_with(folder_of(base))) continue;
        try {
            const Schedule schedule = library.find(name);
            const auto provenance = provenance_of(schedule);
            const auto record = tuning_record_of(schedule);
            if (!provenance || record->goal.metric != Metric::latency) continue;  // tuned for something else than the speed of one call
            const KernelTask &task = provenance->task;
            const bool same = task.algorithm == declared.name && (task.numerics == own || task.numerics == base) && task.target == target;
            if (!same || task.options != options || !is_near(task, fixed)) continue;
            if (const auto dims = fixed_there_alone(task, fixed); !dims.empty()) {
                if (of_fixed_dims++ == 0)
                    first_of_them = name + ": it is for " + join(dims) + ", which the kernel leaves dynamic; --shape fixes dims";
                continue;
            }
            Anchor anchor{schedule, task, record->is_predicted, shape_distance(tuned_with(task, fixed), fixed)};
            anchor.is_base = task.numerics != own;
            anchor.fixes_less = task.fixed.size() < fixed.size();
            for (const auto &[dim, extent] : task.extents) anchor.dynamic_points *= static_cast<double>(extent);
            all.push_back(anchor);
        } catch (const UserError &error) { passed_over.push_back(name + ": " + error.what()); }
    }
    std::sort(all.begin(), all.end());
    if (all.empty() && of_fixed_dims > 0)
        passed_over.push_back(first_of_them + (of_fixed_dims > 1 ? fmt::format("; {} more are alike", of_fixed_dims - 1) : ""));
    return all;
}

// Where schedules of all shapes are, nearest first: those of its policy, with its words and without, those of its type of storage, those
// made for f32.
std::vector<std::string> families_of(const Algorithm &declared) {
    const std::string &own = declared.numerics.name, base = base_name(own);
    std::vector<std::string> all = {declared.name + "/" + own};
    if (base != own) all.push_back(declared.name + "/" + base);
    if (const std::string storage = name_of(declared.numerics.storage); storage != base && storage != "f32")
        all.push_back(declared.name + "/" + storage);
    all.push_back(declared.name);
    return all;
}

bool packs_ahead(const Kernel &kernel) {
    const std::vector<Argument> &arguments = kernel.general().arguments;
    return std::any_of(arguments.begin(), arguments.end(), [](const Argument &a) { return a.packed.has_value(); });
}

}  // namespace

Chooser::Chooser(const Library &library, const Target &target, bool family_only, PreparationObserver observer)
    : library_(library), target_(target), family_only_(family_only), observer_(std::move(observer)) {}

TakenSchedule Chooser::take(const Schedule &schedule, const Algorithm &declared, const Extents &fixed) {
    TakenSchedule taken;
    const auto match = [&](const std::string &scope, const Algorithm &callee, const Extents &fixed_there) {
        const Match found = match_callee(callee, fixed_there);
        taken.callees.push_back({scope, callee, found});
        return found.schedule;
    };
    const auto made_of = made_of_.find(declared.name);
    taken.applied = applied_schedule(schedule, declared, fixed, library_, match, made_of == made_of_.end() ? nullptr : made_of->second);
    return taken;
}

MadeKernel Chooser::make(const Schedule &schedule, const Algorithm &declared, const Extents &fixed) {
    TakenSchedule taken = take(schedule, declared, fixed);
    check(taken.applied.resolved, declared);
    const Algorithm bound = bind_extents(declared, fixed);
    Compiled compiled = compile(bound, taken.applied.resolved, target_, observer_.of(bound));
    return {std::move(taken), std::move(compiled)};
}

// Where there is no kernel, why the schedule does not apply.
struct Chooser::Trial {
    std::shared_ptr<const MadeKernel> made;
    std::string why;
};

Chooser::Trial Chooser::tried(const Schedule &schedule, const Algorithm &declared, const Extents &fixed,
                              std::shared_ptr<const MadeKernel> made, bool may_pack_ahead) {
    try {
        if (!made) made = std::make_shared<const MadeKernel>(make(schedule, declared, fixed));
        if (may_pack_ahead || !packs_ahead(made->compiled.kernel)) return {std::move(made), ""};
        return {nullptr, "it takes operands packed ahead of time, which changes the kernel's arguments, so it has to be named"};
    } catch (const UserError &error) { return {nullptr, error.what()}; }
}

// The schedule of the algorithm's family for the last of the match's targets.
bool Chooser::take_family(Match &match, const Algorithm &declared, const Extents &fixed, const std::vector<std::string> &names) {
    const std::vector<std::string> folders = families_of(declared);
    for (const std::string &folder : folders) {
        const std::string name = folder + "/" + match.targets.back();
        if (std::find(names.begin(), names.end(), name) == names.end()) continue;
        const Schedule schedule = library_.find(name);
        const bool is_own = declared.numerics.name == "f32" || folder == folders.front();
        std::shared_ptr<const MadeKernel> made;
        // Made for another policy: it has to fit the stages, and to keep to this one.
        if (!is_own) {
            try {
                made = std::make_shared<const MadeKernel>(make(schedule, declared, fixed));
            } catch (const UserError &) { continue; }
        }
        match.schedule = schedule, match.how = Match::How::family, match.made = std::move(made);
        return true;
    }
    return false;
}

Match Chooser::matched(const Algorithm &declared, const Extents &fixed, const Tuned &tuned) {
    const std::vector<std::string> names = library_.names();
    Match match;
    for (const std::string &name : nearest_targets(target_)) {
        match.targets.push_back(name);
        if (tuned(match, names) || take_family(match, declared, fixed, names)) return match;
    }
    return match;
}

// Adds the nearest artifact for each target whose code this one does not run, where there is none of this shape that it does run.
static void note_wider(Match &match, const Algorithm &declared, const Options &options, const Extents &fixed, const Target &target,
                       const Library &library) {
    if (match.how == Match::How::exact) return;
    const std::vector<std::string> own = nearest_targets(target), names = library.names();
    for (const std::string &other : target_names()) {
        if (std::find(own.begin(), own.end(), other) != own.end() || target_named(other).arch != target.arch) continue;
        std::vector<std::string> of_other;
        const std::vector<Anchor> all = anchors(declared, options, fixed, other, library, names, of_other);
        if (all.empty()) continue;
        match.passed_over.push_back(all.front().schedule.name() + ": it is for " + other + ", and " + target.name +
                                    " does not have all of its instructions; --target " + other + " builds it");
    }
}

Match Chooser::best(const Algorithm &declared, const Options &options, const Extents &fixed) {
    Match found = matched(declared, fixed, [&](Match &match, const std::vector<std::string> &names) {
        for (const Anchor &anchor : anchors(declared, options, fixed, match.targets.back(), library_, names, match.passed_over)) {
            Trial trial = tried(anchor.schedule, declared, fixed);
            if (!trial.made) {
                match.passed_over.push_back(anchor.schedule.name() + ": " + trial.why);
                continue;
            }
            match.schedule = anchor.schedule, match.tuned_for = tuned_with(anchor.task, fixed), match.is_predicted = anchor.is_predicted;
            match.how = anchor.task.fixed == fixed ? Match::How::exact : Match::How::nearest;
            match.made = std::move(trial.made);
            return true;
        }
        return false;
    });
    note_wider(found, declared, options, fixed, target_, library_);
    return found;
}

Match Chooser::family(const Algorithm &declared, const Extents &fixed) {
    return matched(declared, fixed, [](Match &, const std::vector<std::string> &) { return false; });
}

Match Chooser::fitting(const Algorithm &declared, const Options &options, const Extents &fixed) {
    return tried_family(family_only_ ? family(declared, fixed) : best(declared, options, fixed), declared, fixed, true);
}

Match Chooser::applying(const Algorithm &declared, const Extents &fixed) {
    return tried_family(family_only_ ? family(declared, fixed) : best(declared, {}, fixed), declared, fixed, false);
}

Match Chooser::tried_family(Match match, const Algorithm &declared, const Extents &fixed, bool may_pack_ahead) {
    if (match.how != Match::How::family) return match;
    Trial trial = tried(*match.schedule, declared, fixed, match.made, may_pack_ahead);
    if (!trial.made) {
        match.passed_over.push_back(match.schedule->name() + ": " + trial.why);
        match.schedule.reset(), match.how = Match::How::none;
    }
    match.made = std::move(trial.made);
    return match;
}

Match Chooser::match_callee(const Algorithm &callee, const Extents &fixed) {
    const CalleeKey key{callee.name, text_of(callee.numerics), semantic_hash(callee), surface_hash(callee), fixed};
    if (const auto known = callees_.find(key); known != callees_.end()) return known->second;
    Match match = applying(callee, fixed);
    match.made.reset();  // its caller is compiled as a whole
    return callees_.emplace(key, std::move(match)).first->second;
}

std::vector<fs::path> looked_at(const Algorithm &declared, const Match &match, const std::vector<fs::path> &folders) {
    std::set<fs::path> all;
    std::error_code error;
    auto listing = [&](const fs::path &root, fs::path folder) {
        while (folder != root && !fs::is_directory(folder, error)) folder = folder.parent_path();
        all.insert(folder);
    };
    for (const fs::path &given : folders) {
        const fs::path root = fs::canonical(given, error);
        if (error) continue;
        const fs::path own = root / declared.name / declared.numerics.name;
        const std::vector<std::string> families = families_of(declared);
        for (const std::string &family : families) listing(root, root / family);
        for (const std::string &target : match.targets) {
            listing(root, own / target);
            for (const std::string &family : families)
                if (const fs::path file = root / family / (target + ".json"); fs::is_regular_file(file, error)) all.insert(file);
            fs::recursive_directory_iterator it(own / target, fs::directory_options::skip_permission_denied, error), end;
            for (; !error && it != end; it.increment(error))
                if (it->is_directory(error) || it->path().extension() == ".json") all.insert(it->path());
        }
    }
    return {all.begin(), all.end()};
}

}  // namespace tessera

#include "generators/kernel/best_match.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "generators/kernel/lower_variants.h"
#include "generators/kernel/tuning_record.h"
#include "schedules/check/check.h"
#include "support/text/error.h"

namespace tessera {

namespace fs = std::filesystem;

std::vector<std::string> nearest_targets(const Target &target) {
    std::vector<std::string> nearest = {target.name};
    std::vector<std::string> below = target_names();
    for (auto name = below.rbegin(); name != below.rend(); ++name) {
        if (*name == "host" || *name == target.name) continue;
        const Target other = target_named(*name);
        if (other.arch != target.arch) continue;
        if (std::all_of(other.features.begin(), other.features.end(), [&](const std::string &f) { return target.has(f); }))
            nearest.push_back(*name);
    }
    if (!target.stands_in.empty()) nearest.push_back(target.stands_in);
    return nearest;
}

const char *name_of(Match::How how) {
    switch (how) {
    case Match::How::named: return "named";
    case Match::How::exact: return "exact";
    case Match::How::nearest: return "nearest";
    case Match::How::family: return "family";
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
    bool fixes_less = false;  // than the kernel
    bool operator<(const Anchor &other) const {
        return std::make_tuple(is_predicted, distance, fixes_less, task.threads, -dynamic_points, schedule.name()) <
               std::make_tuple(other.is_predicted, other.distance, other.fixes_less, other.task.threads, -other.dynamic_points,
                               other.schedule.name());
    }
};

// What was tuned for this algorithm on this target: the measured first, nearest shape first. `passed_over` gets others that come near, with
// why they do not apply.
std::vector<Anchor> anchors(const Algorithm &declared, const Options &options, const Extents &fixed, const std::string &target,
                            const Library &library, const std::vector<std::string> &names, std::vector<std::string> &passed_over) {
    const std::string folder = declared.name + "/" + declared.numerics.name + "/" + target + "/";
    std::vector<Anchor> all;
    size_t of_fixed_dims = 0;
    std::string first_of_them;
    for (const std::string &name : names) {
        if (!name.starts_with(folder)) continue;
        try {
            const Schedule schedule = library.find(name);
            const auto provenance = provenance_of(schedule);
            const auto record = tuning_record_of(schedule);
            if (!provenance || record->goal.metric != Metric::latency) continue;  // tuned for something else than the speed of one call
            const KernelTask &task = provenance->task;
            const bool same = task.algorithm == declared.name && task.numerics == declared.numerics.name && task.target == target;
            if (!same || task.options != options || !is_near(task, fixed)) continue;
            if (const auto dims = fixed_there_alone(task, fixed); !dims.empty()) {
                if (of_fixed_dims++ == 0)
                    first_of_them = name + ": it is for " + join(dims) + ", which the kernel leaves dynamic; --shape fixes dims";
                continue;
            }
            Anchor anchor{schedule, task, record->is_predicted, shape_distance(tuned_with(task, fixed), fixed)};
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

// The kernel under the schedule, which is shown to be safe. UserError why it is not.
Kernel made_kernel(const Schedule &schedule, const Algorithm &declared, const Extents &fixed, const Target &target,
                   const Library &library) {
    const ResolvedSchedule resolved =
        applied_schedule(schedule, declared, fixed, library, callees_matched(target, library, false)).resolved;
    check(resolved, declared);
    check_requires(resolved, target);
    Kernel kernel = lower_variants(declared.name, resolved, bind_extents(declared, fixed), target);
    for (const KernelVariant &variant : kernel.variants)
        if (const std::vector<std::string> assumed = verify(variant.program); !assumed.empty())
            throw UserError("schedule.unproved", assumed.front());
    return kernel;
}

// Why the schedule does not apply to the kernel; "" where it does.
std::string refusal(const Schedule &schedule, const Algorithm &declared, const Extents &fixed, const Target &target,
                    const Library &library) {
    try {
        for (const KernelVariant &variant : made_kernel(schedule, declared, fixed, target, library).variants) {
            const std::vector<Argument> &arguments = variant.program.arguments;
            if (std::any_of(arguments.begin(), arguments.end(), [](const Argument &a) { return a.packed.has_value(); }))
                return "it takes operands packed ahead of time, which changes the kernel's arguments, so it has to be named";
        }
        return "";
    } catch (const UserError &error) { return error.what(); }
}

bool can_be_made(const Schedule &schedule, const Algorithm &declared, const Target &target, const Library &library) {
    try {
        made_kernel(schedule, declared, {}, target, library);
        return true;
    } catch (const UserError &) { return false; }
}

// Where schedules of all shapes are, nearest first: those of its policy, those of its type of storage, those made for f32.
std::vector<std::string> families_of(const Algorithm &declared) {
    std::vector<std::string> all = {declared.name + "/" + declared.numerics.name};
    if (const std::string storage = name_of(declared.numerics.storage); storage != declared.numerics.name && storage != "f32")
        all.push_back(declared.name + "/" + storage);
    all.push_back(declared.name);
    return all;
}

std::optional<Schedule> family_of(const Algorithm &declared, const std::string &target, const Library &library,
                                  const std::vector<std::string> &names) {
    const std::vector<std::string> folders = families_of(declared);
    for (const std::string &folder : folders) {
        if (std::find(names.begin(), names.end(), folder + "/" + target) == names.end()) continue;
        Schedule schedule = library.find(folder + "/" + target);
        const bool is_own = declared.numerics.name == "f32" || folder == folders.front();
        if (is_own) return schedule;
        // Made for another policy: it has to fit the stages, and to keep to this one.
        if (can_be_made(schedule, declared, target_named(target), library)) return schedule;
    }
    return {};
}

Match matched(const Algorithm &declared, const Target &target, const Library &library,
              const std::function<bool(Match &, const std::vector<std::string> &)> &tuned) {
    const std::vector<std::string> names = library.names();
    Match match;
    for (const std::string &name : nearest_targets(target)) {
        match.targets.push_back(name);
        if (tuned(match, names)) return match;
        if ((match.schedule = family_of(declared, name, library, names))) {
            match.how = Match::How::family;
            return match;
        }
    }
    return match;
}

}  // namespace

Match best_match(const Algorithm &declared, const Options &options, const Extents &fixed, const Target &target, const Library &library) {
    return matched(declared, target, library, [&](Match &match, const std::vector<std::string> &names) {
        for (const Anchor &anchor : anchors(declared, options, fixed, match.targets.back(), library, names, match.passed_over)) {
            if (const std::string why = refusal(anchor.schedule, declared, fixed, target, library); !why.empty()) {
                match.passed_over.push_back(anchor.schedule.name() + ": " + why);
                continue;
            }
            match.schedule = anchor.schedule, match.tuned_for = tuned_with(anchor.task, fixed), match.is_predicted = anchor.is_predicted;
            match.how = anchor.task.fixed == fixed ? Match::How::exact : Match::How::nearest;
            return true;
        }
        return false;
    });
}

Match family_match(const Algorithm &declared, const Target &target, const Library &library) {
    return matched(declared, target, library, [](Match &, const std::vector<std::string> &) { return false; });
}

Match applying_match(const Algorithm &declared, const Extents &fixed, const Target &target, const Library &library, bool family_only) {
    Match match = family_only ? family_match(declared, target, library) : best_match(declared, {}, fixed, target, library);
    if (match.how != Match::How::family) return match;
    if (const std::string why = refusal(*match.schedule, declared, fixed, target, library); !why.empty()) {
        match.passed_over.push_back(match.schedule->name() + ": " + why);
        match.schedule.reset(), match.how = Match::How::none;
    }
    return match;
}

MatchCallee callees_matched(const Target &target, const Library &library, bool family_only, std::vector<CalleeMatch> *matches) {
    return [=, &target, &library](const std::string &scope, const Algorithm &callee, const Extents &fixed) {
        const Match match = applying_match(callee, fixed, target, library, family_only);
        if (matches) matches->push_back({scope, callee, match});
        return match.schedule;
    };
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

#include "generators/kernel/prepare.h"

#include <algorithm>
#include <iostream>
#include <set>

#include <fmt/format.h>

#include "algorithms/transform/half_bytes.h"
#include "compiler/abi/c_names.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "generators/kernel/algorithm_file.h"
#include "generators/kernel/derived_schedule.h"
#include "schedules/check/check.h"
#include "schedules/knobs/condition.h"
#include "schedules/knobs/pattern.h"
#include "support/text/error.h"

namespace tessera {

// The algorithm of a file says its own numerics and has no options.
static Algorithm algorithm_of_file(const Registry &registry, const KernelOptions &options, const Options &given) {
    Algorithm algorithm = read_algorithm(options.algorithm);
    complete_options(options.algorithm, {}, given);
    if (!options.numerics.empty() && options.numerics != algorithm.numerics.name &&
        registry.numerics(options.numerics) != algorithm.numerics)
        throw UserError("command.numerics", "--numerics '" + options.numerics + "': expected the numerics of " + options.algorithm +
                                                ", which are '" + algorithm.numerics.name + "'; leave out --numerics.");
    return algorithm;
}

Algorithm load_algorithm(const Registry &registry, const KernelOptions &options, Options *complete) {
    const Options given = parse_options(options.options);
    if (options.given) return *options.given;
    if (is_algorithm_file(options.algorithm)) return algorithm_of_file(registry, options, given);
    const Options all = complete_options(options.algorithm, registry.find(options.algorithm).options, given);
    if (complete) *complete = all;
    return registry.make(options.algorithm, registry.numerics(options.numerics.empty() ? "f32" : options.numerics), all);
}

std::optional<Schedule> named_schedule(const std::string &name, const Library &library) {
    if (name == "none") return {};
    return name.ends_with(".json") ? read_schedule(name) : library.find(name);
}

std::vector<Kernel> PreparedKernel::kernels() const {
    std::vector<Kernel> all = {kernel};
    all.insert(all.end(), packings.begin(), packings.end());
    return all;
}

// Derives a schedule, and says how it was come by.
static std::string derive_for(PreparedKernel &p, const Registry &registry, const KernelOptions &options) {
    // Of "host", the processor that it is called by, with that one's stated caches: no machine that builds decides what is built.
    const Target target = options.target == "host" ? target_named(p.target.name) : p.target;
    const DerivedSchedule derived =
        derived_schedule(registry, p.declared, p.fixed, parse_shape(options.derive_for, "--derive-for"), target);
    p.schedule = derived.schedule, p.match.how = Match::How::derived;
    std::string text = "derived";
    if (derived.candidates > 0) text += fmt::format(" from {} candidates in {:.1f} s", derived.candidates, derived.seconds);
    return derived.file ? text + ", kept in " + derived.file->string() : text;
}

// `derived` says how, where the schedule was derived.
static void note_match(const PreparedKernel &p, const std::string &derived) {
    const std::string kernel = p.declared.name + " on " + p.target.name + ": ";
    for (const std::string &why : p.match.passed_over) std::cerr << "note: " << kernel << "passed over " << why << "\n";
    std::string taken = "no schedule, so that the one to beat is the space's most likely";
    if (p.schedule) taken = "schedule '" + p.schedule->name() + "'";
    const char *tuned = p.match.is_predicted ? ", predicted, not measured, for " : ", tuned for ";
    if (p.match.how == Match::How::exact) taken += std::string(tuned) + "this shape";
    if (p.match.how == Match::How::nearest) {
        taken += std::string(tuned) + "the nearest shape,";
        for (const auto &[dim, extent] : p.match.tuned_for) taken += " " + dim + "=" + std::to_string(extent);
    }
    if (p.match.how == Match::How::derived) taken += ", " + derived;
    std::cerr << "note: " << kernel << taken << "; --schedule chooses another\n";
}

// Of calls that the schedule says nothing of.
static void note_callee(const PreparedKernel &p, const CalleeMatch &callee) {
    const std::string call = p.declared.name + " on " + p.target.name + ": call '" + callee.scope + "': ";
    for (const std::string &why : callee.match.passed_over) std::cerr << "note: " << call << "passed over " << why << "\n";
    if (callee.match.schedule)
        std::cerr << "note: " << call << "schedule '" << callee.match.schedule->name() << "', the best match for " << callee.callee.name
                  << "; \"" << callee.scope << "\": {\"use\": …} in the schedule chooses another\n";
}

void take_schedule(PreparedKernel &p, const Schedule &schedule, const Library &library, bool family_only) {
    p.schedule = schedule;
    p.ancestry = library.ancestry(schedule);
    p.callee_matches.clear();
    p.applied =
        applied_schedule(schedule, p.declared, p.fixed, library, callees_matched(p.target, library, family_only, &p.callee_matches));
    p.resolved = p.applied.resolved;
}

static void watch_callees(PreparedKernel &p, const std::vector<std::filesystem::path> &folders) {
    std::set<std::filesystem::path> all(p.watched.begin(), p.watched.end());
    for (const CalleeMatch &callee : p.callee_matches)
        for (const std::filesystem::path &path : looked_at(callee.callee, callee.match, folders)) all.insert(path);
    for (const CalleeSchedule &callee : p.applied.program.callees)
        for (const Schedule &s : callee.ancestry)
            if (s.file()) all.insert(*s.file());
    p.watched.assign(all.begin(), all.end());
}

static PreparedKernel unscheduled(const Registry &registry, const KernelOptions &options, const Target &target) {
    PreparedKernel p;
    const Algorithm declared = load_algorithm(registry, options, &p.options);
    p.declared = in_bytes(declared);
    const auto stays = [&](const Call &call) {
        return std::any_of(p.declared.calls().begin(), p.declared.calls().end(), [&](const Call &c) { return c.scope == call.scope; });
    };
    for (const Call &call : declared.calls())
        if (!options.quiet && !stays(call))
            std::cerr << "note: " << declared.name << ": call '" << call.scope << "' has tensors of four bits an element and is inlined; "
                      << "a schedule names its stages, '" << call.scope << ".…', and not the call\n";
    p.fixed = parse_shape(options.shape);
    p.bound = bind_extents(p.declared, p.fixed);
    p.elements = bind_extents(declared, p.fixed);
    p.target = target;
    return p;
}

static PreparedKernel scheduled(PreparedKernel p, const Registry &registry, const KernelOptions &options) {
    const std::vector<std::filesystem::path> folders = registry.schedule_folders(options.schedule_dirs);
    const Library library = registry.library(folders);
    if (options.schedule.empty()) {
        if (options.given || is_algorithm_file(options.algorithm))
            p.match = applying_match(p.declared, p.fixed, p.target, library, options.family_only);
        else if (options.family_only) p.match = family_match(p.declared, p.target, library);
        else p.match = best_match(p.declared, p.options, p.fixed, p.target, library);
        p.schedule = p.match.schedule;
        p.watched = looked_at(p.declared, p.match, folders);
    } else if (options.schedule != "derived") {
        p.schedule = named_schedule(options.schedule, library);
        p.match.how = Match::How::named;
    }
    if (p.match.how != Match::How::named) {
        const std::string derived = p.schedule || options.family_only ? "" : derive_for(p, registry, options);
        if (!options.quiet) note_match(p, derived);
    }
    if (!p.schedule) return p;
    take_schedule(p, *p.schedule, library, options.family_only);
    watch_callees(p, folders);
    if (!options.quiet)
        for (const CalleeMatch &callee : p.callee_matches) note_callee(p, callee);
    if (!options.quiet && !options.schedule.empty())  // those that ship are for more than one size
        for (const std::string &idle : idle_patterns(p.applied.program.resolved, p.declared))
            std::cerr << "note: schedule '" << p.resolved.name << "': " << idle << "\n";
    check(p.resolved, p.declared);
    check_requires(p.resolved, p.target);
    return p;
}

static Target one_target(const Registry &registry, const std::string &text) {
    if (text.find(',') == std::string::npos) return registry.target(text);
    throw UserError("command.one-target",
                    "--target '" + text + "': expected one target; only 'generate' takes several. Choose one of them.");
}

PreparedKernel prepare_schedule(const Registry &registry, const KernelOptions &options) {
    return scheduled(unscheduled(registry, options, one_target(registry, options.target)), registry, options);
}

static PreparedKernel prepare_for(const Registry &registry, const KernelOptions &options, const Target &target, const std::string &given) {
    PreparedKernel p = unscheduled(registry, options, target);
    const std::string name = given.empty() ? p.declared.name : given;
    check_c_name(name);
    p = scheduled(std::move(p), registry, options);
    std::vector<std::string> notes;
    p.kernel = lower_variants(name, p.resolved, p.bound, p.target, &notes);
    for (const std::string &note : notes)
        if (!options.quiet) std::cerr << "note: " << note << "\n";
    p.packings = lower_packings_of(p.kernel, p.resolved, p.bound, p.target);
    std::set<std::string> packing_names;
    for (const Kernel &packing : p.packings) {
        check_c_name(packing.name), verify(packing.general());
        if (!packing_names.insert(packing.name).second)
            throw UserError("emit.name", p.declared.name + ": two operands would be packed by a function '" + packing.name +
                                             "'; expected names that differ in more than '.' and '_'. Rename one of the operands.");
    }
    for (const KernelVariant &variant : p.kernel.variants)
        // What the interpreter would find out while it runs, a kernel would not.
        if (const std::vector<std::string> assumed = verify(variant.program); !assumed.empty())
            throw UserError("schedule.unproved",
                            p.declared.name + ": " + assumed.front() +
                                ", so the schedule is refused; use tiles that divide one another, or fewer levels of them.");
    return p;
}

PreparedKernel prepare(const Registry &registry, const KernelOptions &options, const std::string &name) {
    return prepare_for(registry, options, one_target(registry, options.target), name);
}

// Layouts may differ: the library packs for the processor that it runs on.
static void check_packed_operands(const PreparedKernel &a, const PreparedKernel &b) {
    auto operands = [](const PreparedKernel &p) {
        std::vector<std::string> names;
        for (const Argument &argument : p.kernel.general().arguments)
            if (argument.packed) names.push_back(argument.packed->operand.name);
        return names;
    };
    auto text = [](const std::vector<std::string> &names) { return names.empty() ? "none" : join(names); };
    if (operands(a) != operands(b))
        throw UserError("schedule.prepack",
                        a.kernel.name + ": the schedules of all targets must take the same operands packed ahead of time; that of " +
                            a.target.name + " takes " + text(operands(a)) + ", that of " + b.target.name + " " + text(operands(b)) +
                            ". Name a schedule for each target with --schedule-for.");
}

static void check_schedules_have_targets(const std::map<std::string, std::string> &schedules, const std::vector<Target> &targets) {
    std::vector<std::string> names;
    for (const Target &target : targets) names.push_back(target.name);
    for (const auto &[target, schedule] : schedules)
        if (std::find(names.begin(), names.end(), target) == names.end())
            throw UserError("command.schedule-for", "--schedule-for '" + target + "=" + schedule + "': the library is not for '" + target +
                                                        "'; its targets are " + join(names) + ".");
}

std::vector<PreparedKernel> prepare_all(const Registry &registry, const KernelOptions &options,
                                        const std::map<std::string, std::string> &schedules, const std::string &name) {
    const std::vector<Target> targets = targets_named(options.target, [&](const std::string &named) { return registry.target(named); });
    check_schedules_have_targets(schedules, targets);
    std::vector<PreparedKernel> all;
    for (const Target &target : targets) {
        KernelOptions one = options;
        if (auto own = schedules.find(target.name); own != schedules.end()) one.schedule = own->second;
        all.push_back(prepare_for(registry, one, target, name));
        check_packed_operands(all.front(), all.back());
    }
    return all;
}

const KernelVariant &variant_for(const Kernel &kernel, const Extents &extents) {
    for (const KernelVariant &variant : kernel.variants) {
        const bool taken =
            std::all_of(variant.when.begin(), variant.when.end(), [&](const Condition &c) { return holds(c, extents.at(c.dim)); });
        if (taken) return variant;
    }
    throw InternalError("the last variant of a kernel has no condition");
}

KnobsByStage knobs_for(const PreparedKernel &p, const Extents &extents) { return knobs_for(p.resolved, p.bound, p.target, extents); }

}  // namespace tessera

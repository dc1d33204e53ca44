#include "generators/registry/registry.h"

#include <algorithm>

#include <fmt/format.h>

#include "algorithms/evaluate/monoid_laws.h"
#include "algorithms/evaluate/rule_laws.h"
#include "algorithms/text/numerics_file.h"
#include "compiler/instructions/families.h"
#include "generators/registry/author_made.h"
#include "generators/registry/options.h"
#include "schedules/target/target_file.h"
#include "support/text/error.h"
#include "support/text/printable.h"

namespace tessera {

namespace fs = std::filesystem;

Registry &Registry::add(const std::string &name, const std::string &summary, std::function<Algorithm(const Numerics &)> make) {
    if (!make) return add(name, summary, {}, std::function<Algorithm(const Numerics &, const Options &)>());
    return add(name, summary, {}, [make = std::move(make)](const Numerics &numerics, const Options &) { return make(numerics); });
}

Registry &Registry::add(const std::string &name, const std::string &summary, std::vector<Option> options,
                        std::function<Algorithm(const Numerics &, const Options &)> make) {
    entries_.push_back({name, summary, family_, std::move(options), std::move(make)});
    return *this;
}

Registry &Registry::family(const std::string &name) {
    family_ = name;
    return *this;
}

Registry &Registry::add_schedule(std::function<Schedule()> make) {
    schedules_.push_back(std::move(make));
    return *this;
}

Registry &Registry::add_schedules(const fs::path &folder) {
    folders_.push_back(folder);
    return *this;
}

Registry &Registry::add_target(const std::string &name, const Target &target) {
    targets_.push_back({name, "", target});
    return *this;
}

Registry &Registry::add_target(const std::string &name, const fs::path &file) {
    targets_.push_back({name, "", file});
    return *this;
}

Registry &Registry::add_numerics(const Numerics &policy) {
    numerics_.push_back(policy);
    return *this;
}

Registry &Registry::add_cost_model(const std::string &name, const std::string &summary, MakeCostModel make) {
    cost_models_.push_back({name, summary, std::move(make)});
    return *this;
}

Registry &Registry::add_mutator(const std::string &name, const std::string &summary, Mutator mutate) {
    mutators_.push_back({name, summary, std::move(mutate)});
    return *this;
}

Registry &Registry::add_analyser(const std::string &name, const std::string &summary, Analyse analyse) {
    analysers_.push_back({name, summary, std::move(analyse)});
    return *this;
}

Registry &Registry::add_emitter(const Emitter &emitter) {
    emitters_.push_back({emitter.name, emitter.summary, emitter});
    return *this;
}

// The first is what a generator makes where nobody says what.
static std::vector<Emitter> own_emitters() { return {library_emitter(), c_emitter(), opencl_emitter(), cuda_emitter()}; }

std::vector<Emitter> Registry::all_emitters() const {
    std::vector<Emitter> all = own_emitters();
    for (const Extension<Emitter> &one : emitters_) all.push_back(one.value);
    return all;
}

static std::vector<std::string> names_of(const std::vector<Emitter> &emitters) {
    std::vector<std::string> names;
    for (const Emitter &one : emitters)
        if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
    return names;
}

std::vector<std::string> Registry::emitter_names() const { return names_of(all_emitters()); }

std::vector<std::string> Registry::emitter_meanings() const {
    std::vector<std::string> meanings;
    for (const std::string &name : emitter_names()) {
        const std::vector<Emitter> all = all_emitters();
        const auto first = std::find_if(all.begin(), all.end(), [&](const Emitter &one) { return one.name == name; });
        meanings.push_back(name + ": " + first->summary);
    }
    return meanings;
}

Emitter Registry::emitter(const std::string &name, const Target &target) const {
    std::vector<Emitter> accepting = all_emitters();
    const std::string standard = accepting.front().name;
    std::erase_if(accepting, [&](const Emitter &one) { return !one.accepts(target); });
    for (const Emitter &one : accepting)
        if (one.name == name) return one;
    if (name == standard && !accepting.empty()) return accepting.front();
    throw UserError("command.emit", "--emit " + printable(name) + ": expected a form in which kernels for '" + target.name +
                                        "' come out; those are " + join(names_of(accepting)) + ". Choose one of them, or another target.");
}

Registry &Registry::add_instruction(Instruction family) {
    try {
        add_family(std::move(family));
    } catch (const UserError &error) {
        if (!refused_family_) refused_family_ = error;
    }
    return *this;
}

const std::vector<std::string> &views() {
    static const std::vector<std::string> all = {"algorithm", "shapes", "mesh",     "schedule", "fields", "lowering", "tiles",
                                                 "bits",      "memory", "lockstep", "slow",     "c",      "assembly"};
    return all;
}

const std::vector<std::string> &cost_model_words() {
    static const std::vector<std::string> all = {"none", "roofline"};
    return all;
}

static bool has(const std::vector<std::string> &names, const std::string &name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

// `what` is "cost model 'mine'".
template <typename Function>
static void check_not_empty(const std::string &what, const Function &function) {
    if (!function) throw UserError("generator.entry", what + ": expected a function; got an empty one. Register one that can be called.");
}

// `kind` is "cost model"; `taken` are names that mean something else already.
template <typename Value>
static void check_extensions(const std::string &kind, const std::vector<Registry::Extension<Value>> &all,
                             const std::vector<std::string> &taken) {
    std::vector<std::string> known = taken;
    for (const Registry::Extension<Value> &one : all) {
        const bool is_word = !one.name.empty() && one.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
        if (!is_word)
            throw UserError("generator.entry",
                            kind + " '" + printable(one.name) +
                                "': expected a name of lower-case letters, digits and '_', which a command line takes; got "
                                "another. Rename it.");
        if (has(taken, one.name))
            throw UserError("generator.duplicate", kind + " '" + one.name + "': expected a name that is not Tessera's own; those are " +
                                                       join(taken) + ". Give it another name.");
        if (has(known, one.name))
            throw UserError("generator.duplicate",
                            kind + " '" + one.name + "': expected one registration of each name; got two. Give one of them another name.");
        known.push_back(one.name);
        if constexpr (requires { !one.value; }) check_not_empty(kind + " '" + one.name + "'", one.value);
    }
}

// Lowering and the emitters go by the name that a target carries.
static Target checked(const std::string &name, const Target &target) {
    auto fail = [&](const std::string &got) {
        throw UserError("generator.target", "target '" + name + "': expected one of Tessera's targets, with other numbers at most; got " +
                                                got + ". Begin with target_named(\"avx2\") or another of " + join(target_names()) + ".");
    };
    Target own;
    try {
        own = target_named(target.name);
    } catch (const UserError &) { fail("one that is called '" + printable(target.name) + "'"); }
    if (own.arch != target.arch || own.features != target.features || own.name != target.name ||
        own.compute_capability != target.compute_capability || own.stands_in != target.stands_in)
        fail("one that is called '" + target.name + "' and has not its features");
    if (target.vector_bytes > own.vector_bytes || target.vector_registers > own.vector_registers || target.vector_bytes < 16 ||
        (target.vector_bytes & (target.vector_bytes - 1)) || target.vector_registers < 4)
        fail("vectors that '" + target.name + "' does not have");
    if (target.l1_bytes < 1 || target.l2_bytes < 1 || target.l3_bytes < 1) fail("a cache of no bytes");
    if (own.is_gpu() ? target.shared_bytes < 1 || target.max_threads < 1
                     : target.shared_bytes != own.shared_bytes || target.max_threads != own.max_threads)
        fail(fmt::format("blocks of {} threads that share {} bytes", target.max_threads, target.shared_bytes));
    return target;
}

void Registry::check() const {
    if (refused_family_) throw UserError(*refused_family_);
    const std::vector<Entry> sorted = entries();
    for (const Entry &entry : sorted) check_not_empty("algorithm '" + entry.name + "'", entry.make);
    for (const auto &make : schedules_) check_not_empty("a registered schedule", make);
    for (size_t i = 1; i < sorted.size(); i++)
        if (sorted[i].name == sorted[i - 1].name)
            throw UserError(
                "generator.duplicate",
                "algorithm '" + sorted[i].name + "': expected one registration of each name; got two. Give one of them another name.");
    check_extensions("target", targets_, target_names());
    std::vector<std::string> policies = tessera::numerics_names();
    for (const Numerics &policy : numerics_) {
        tessera::check(policy);
        if (has(policies, policy.name))
            throw UserError("generator.duplicate", "numerics policy '" + policy.name + "': expected a name that no other has; there are " +
                                                       join(policies) + ". Give it another name.");
        policies.push_back(policy.name);
    }
    check_extensions("cost model", cost_models_, cost_model_words());
    check_extensions("mutator", mutators_, {});
    check_extensions("analyser", analysers_, views());
    check_extensions("emitter", emitters_, names_of(own_emitters()));
    for (const Extension<Emitter> &one : emitters_)
        check_not_empty("emitter '" + one.name + "'", one.value.accepts ? static_cast<bool>(one.value.emit) : false);
    for (const Extension<TargetSource> &one : targets_)
        if (const auto *target = std::get_if<Target>(&one.value)) checked(one.name, *target);
}

Target Registry::target(const std::string &name) const {
    if (const auto *own = find_extension(targets_, name)) {
        const auto *file = std::get_if<fs::path>(&own->value);
        return file ? checked(name, read_target(*file)) : std::get<Target>(own->value);
    }
    if (targets_.empty()) return target_or_file(name);
    if (const size_t plus = name.find('+'); find_extension(targets_, name.substr(0, plus)))
        throw UserError("target.unknown-feature", "target '" + name + "': expected one of Tessera's targets before '+'; got '" +
                                                      name.substr(0, plus) + "', which this generator registers. Register another for '" +
                                                      target(name.substr(0, plus)).name + name.substr(plus) + "'.");
    try {
        return target_or_file(name);
    } catch (const UserError &error) {
        if (error.id() != "target.unknown") throw;
        throw UserError("target.unknown", error.message() + " This generator's own are " + join(names_of(targets_)) + "." +
                                              did_you_mean(name, names_of(targets_)));
    }
}

std::vector<std::string> Registry::numerics_names() const {
    std::vector<std::string> all = tessera::numerics_names();
    for (const Numerics &policy : numerics_) all.push_back(policy.name);
    return all;
}

Numerics Registry::numerics(const std::string &name) const {
    for (const Numerics &policy : numerics_) {
        if (policy.name == name) return policy;
        if (policy.name == base_name(name)) return with_words(policy, words_of(name));
    }
    if (name.ends_with(".json")) return read_numerics(name);
    try {
        return numerics_named(name);
    } catch (const UserError &error) {
        if (numerics_.empty()) throw;
        std::vector<std::string> own;
        for (const Numerics &policy : numerics_) own.push_back(policy.name);
        throw UserError(error.id(), error.message() + " This generator's own are " + join(own) + "." + did_you_mean(name, own));
    }
}

std::optional<fs::path> Registry::target_file(const std::string &name) const {
    if (const auto *own = find_extension(targets_, name)) {
        const auto *file = std::get_if<fs::path>(&own->value);
        return file ? std::optional(*file) : std::nullopt;
    }
    return name.ends_with(".json") ? std::optional<fs::path>(name) : std::nullopt;
}

std::vector<fs::path> Registry::schedule_folders(const std::vector<std::string> &given) const {
    std::vector<fs::path> folders(given.begin(), given.end());
    folders.insert(folders.end(), folders_.begin(), folders_.end());
    if (const auto own = own_schedules()) folders.push_back(*own);
    return folders;
}

static constexpr const char *unknown_algorithm = "generator.unknown-algorithm", *what_there_is = "; the algorithms are ";

std::string told_again(const UserError &error) {
    const std::string all = error.words();
    return error.id() == unknown_algorithm ? all.substr(0, all.find(what_there_is)) + "." : all;
}

bool Registry::knows(const std::string &algorithm) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const Entry &entry) { return entry.name == algorithm; });
}

const Registry::Entry &Registry::find(const std::string &name) const {
    std::vector<std::string> names;
    for (const Entry &entry : entries_) {
        if (entry.name == name) return entry;
        names.push_back(entry.name);
    }
    std::sort(names.begin(), names.end());
    throw UserError(unknown_algorithm, "there is no algorithm '" + name + "'" + what_there_is + join(names) + "." +
                                           did_you_mean(name, names) +
                                           " One of your own is registered in a generator of your own, or is a file (*.json).");
}

Algorithm Registry::make(const std::string &name, const Numerics &numerics, const Options &options) const {
    const Entry &entry = find(name);
    const Options complete = complete_options(name, entry.options, options);
    Algorithm algorithm = author_made("algorithm '" + name + "'", [&] { return entry.make(numerics, complete); });
    if (algorithm.name != name)
        throw UserError("generator.name", "algorithm '" + name + "': expected it to carry the name that it is registered by; got '" +
                                              algorithm.name + "'. Register it by that name, or build it with the other.");
    check_monoid_laws(algorithm);
    check_rule_laws(algorithm);
    return algorithm;
}

std::vector<std::string> Registry::families() const {
    std::vector<std::string> all;
    for (const Entry &entry : entries_)
        if (std::find(all.begin(), all.end(), entry.family) == all.end()) all.push_back(entry.family);
    return all;
}

std::vector<Registry::Entry> Registry::entries() const {
    std::vector<Entry> sorted = entries_;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Entry &a, const Entry &b) { return a.name < b.name; });
    return sorted;
}

Library Registry::library(const std::vector<fs::path> &folders) const {
    return library(folders, [](const UserError &error) { throw error; });
}

Library Registry::library(const std::vector<fs::path> &folders, const std::function<void(const UserError &)> &missing) const {
    Library library;
    auto attempt = [&](const auto &add) {
        try {
            add();
        } catch (const UserError &error) { missing(error); }
    };
    for (const auto &make : schedules_) attempt([&] { library.add(author_made("a registered schedule", make)); });
    for (const fs::path &folder : folders) attempt([&] { library.add_folder(folder); });
    return library;
}

}  // namespace tessera

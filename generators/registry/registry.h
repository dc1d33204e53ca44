// What a generator binary knows: algorithms by name, and whatever else its author adds to what Tessera brings.
//
//     registry.add("scaled_add", "y[N] = alpha x[N] + z[N]", scaled_add)            an algorithm
//         .add_schedules(MY_SOURCE_DIR "/schedules")                               a folder of schedules
//         .add_target("laptop", target)                                            --target laptop
//         .add_cost_model("by_bytes", "fewest bytes first", by_bytes)              tune --model by_bytes, check --model by_bytes
//         .add_mutator("no_parallel", "one thread or all", no_parallel)            decisions that tune asks too
//         .add_analyser("cache_lines", "cache lines of each buffer", cache_lines)  show --what cache_lines
//         .add_emitter(wgsl_emitter())                                             generate --emit wgsl
//         .add_instruction(pair_sum())                                             the knob "instruction": "pair_sum"
//
// Registering never throws, so that a main needs no handler; what is wrong with a registration is reported when the
// generator starts, as a UserError like any other.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "algorithms/build/option.h"
#include "algorithms/ir/algorithm.h"
#include "autotune/space/search_space.h"
#include "compiler/emit/emitter.h"
#include "compiler/instructions/instruction.h"
#include "compiler/tile/tile_program.h"
#include "costmodel/model/cost_model.h"
#include "schedules/artifact/library.h"
#include "schedules/target/target.h"
#include "support/text/error.h"

namespace tessera {

class Registry {
public:
    struct Entry {
        std::string name;
        std::string summary;  // one line: what is computed, with its dims
        std::string family;   // the heading under which `list` shows it; "" for none
        std::vector<Option> options;
        std::function<Algorithm(const Numerics &, const Options &)> make;  // with a value for each option
    };
    // A name that the command line takes, one line for `list`, and what it stands for.
    template <typename Value>
    struct Extension {
        std::string name, summary;
        Value value;
    };
    // Makes a model for programs of a target, before it has learnt anything.
    using MakeCostModel = std::function<std::unique_ptr<CostModel>(const Target &)>;
    using TargetSource = std::variant<Target, std::filesystem::path>;  // or its file
    // What somebody wants to know of a tile program: a text of whole lines.
    using Analyse = std::function<std::string(const TileProgram &)>;

    // The algorithm that `make` gives must carry the name it is registered by.
    Registry &add(const std::string &name, const std::string &summary, std::function<Algorithm(const Numerics &)> make);
    // One that is declared with named integers (option.h).
    Registry &add(const std::string &name, const std::string &summary, std::vector<Option> options,
                  std::function<Algorithm(const Numerics &, const Options &)> make);
    // The heading under which `list` shows what is added from here on.
    Registry &family(const std::string &name);
    Registry &add_schedule(std::function<Schedule()> make);
    // A folder of artifacts, in which every command looks after those of --schedule-dir and before Tessera's own.
    Registry &add_schedules(const std::filesystem::path &folder);
    // One of Tessera's targets with other numbers: vector width, caches, what was measured. It is called as that one in artifacts and
    // libraries, whose code runs on either, and by this name on the command line. The second reads a target file (target_file.h).
    Registry &add_target(const std::string &name, const Target &target);
    Registry &add_target(const std::string &name, const std::filesystem::path &file);
    // A numerics policy by its own name.
    Registry &add_numerics(const Numerics &policy);
    Registry &add_cost_model(const std::string &name, const std::string &summary, MakeCostModel make);
    // Its decisions are asked last, in every search of this generator; in the order of registration.
    Registry &add_mutator(const std::string &name, const std::string &summary, Mutator mutate);
    Registry &add_analyser(const std::string &name, const std::string &summary, Analyse analyse);
    // A form in which kernels come out, by its own name.
    Registry &add_emitter(const Emitter &emitter);
    // A name for the knob `instruction`, in every registry of the process (compiler/instructions/families.h).
    Registry &add_instruction(Instruction family);

    // UserError generator.duplicate: a name is registered twice, or is Tessera's own. generator.entry: a name that the command line cannot
    // take, or an empty function. instruction.family: a family that is none. generator.target: a target whose code is not that of one of
    // Tessera's. Files and folders are not looked at: only a command that needs one fails where it is missing.
    void check() const;
    bool knows(const std::string &algorithm) const;
    // UserError generator.unknown-algorithm.
    const Entry &find(const std::string &name) const;
    // The algorithm in this policy, with these options. UserError as find and complete_options, generator.name when it calls itself
    // otherwise, generator.builder when what builds it throws something else, those of the algorithm, of its monoids (monoid_laws.h) and of
    // its derivative (rule_laws.h).
    Algorithm make(const std::string &name, const Numerics &numerics, const Options &options = {}) const;
    // Sorted by name.
    std::vector<Entry> entries() const;
    std::vector<std::string> families() const;  // that have entries, in the order in which they were begun
    // The registered schedules, then files of the folders in this order. UserError schedule.folder, schedule.duplicate,
    // generator.builder.
    Library library(const std::vector<std::filesystem::path> &folders) const;
    // The same without the schedules and folders that cannot be had, which `missing` is told of.
    Library library(const std::vector<std::filesystem::path> &folders, const std::function<void(const UserError &)> &missing) const;
    // The folders that were given, the registered ones, and Tessera's own where it is found.
    std::vector<std::filesystem::path> schedule_folders(const std::vector<std::string> &given) const;
    // What --target names: a registered target, a file "<path>.json", or one of Tessera's. UserError as target_or_file,
    // target.unknown-feature where features are added to a registered one, generator.target of a file that was registered.
    Target target(const std::string &name) const;
    // What --numerics names: a registered policy, a file "<path>.json" (numerics_file.h), or one of Tessera's. UserError as
    // numerics_named and read_numerics.
    Numerics numerics(const std::string &name) const;
    // The registered ones behind Tessera's.
    std::vector<std::string> numerics_names() const;
    // What --emit names, for this target; of "library", where that does not accept it, the first that does. UserError command.emit.
    Emitter emitter(const std::string &name, const Target &target) const;
    // The words of --emit, Tessera's own first, each with what comes out.
    std::vector<std::string> emitter_names() const;
    std::vector<std::string> emitter_meanings() const;
    // The file that such a target is read from, where it is one.
    std::optional<std::filesystem::path> target_file(const std::string &name) const;

    // In the order of registration.
    const std::vector<Extension<TargetSource>> &targets() const { return targets_; }
    const std::vector<Extension<MakeCostModel>> &cost_models() const { return cost_models_; }
    const std::vector<Extension<Mutator>> &mutators() const { return mutators_; }
    const std::vector<Extension<Analyse>> &analysers() const { return analysers_; }

private:
    std::vector<Entry> entries_;
    std::string family_;
    std::vector<std::function<Schedule()>> schedules_;
    std::vector<std::filesystem::path> folders_;
    std::vector<Extension<TargetSource>> targets_;
    std::vector<Numerics> numerics_;
    std::vector<Extension<MakeCostModel>> cost_models_;
    std::vector<Extension<Mutator>> mutators_;
    std::vector<Extension<Analyse>> analysers_;
    std::vector<Extension<Emitter>> emitters_;
    std::optional<UserError> refused_family_;

    std::vector<Emitter> all_emitters() const;
};

// The one of that name, or nothing.
template <typename Value>
const Registry::Extension<Value> *find_extension(const std::vector<Registry::Extension<Value>> &all, const std::string &name) {
    for (const Registry::Extension<Value> &one : all)
        if (one.name == name) return &one;
    return nullptr;
}

template <typename Value>
std::vector<std::string> names_of(const std::vector<Registry::Extension<Value>> &all) {
    std::vector<std::string> names;
    for (const Registry::Extension<Value> &one : all) names.push_back(one.name);
    return names;
}

// What `show --what` prints, before any analyser, and `--model` beside files: names that are taken.
const std::vector<std::string> &views();
const std::vector<std::string> &cost_model_words();

// What an error says, for a reader whom one like it told before which algorithms there are.
std::string told_again(const UserError &error);

}  // namespace tessera

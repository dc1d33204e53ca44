// From the command line's words to tile programs: the steps that generate, show, verify and bench share.
#pragma once
#include <optional>

#include "generators/kernel/best_match.h"
#include "generators/kernel/lower_variants.h"
#include "generators/kernel/options.h"
#include "generators/kernel/registry.h"

namespace tessera {

struct PreparedKernel {
    Algorithm declared;  // as its author wrote it, in the policy
    Options options;     // a value for each that the algorithm has
    Extents fixed;
    Algorithm bound;     // with the fixed dims
    Algorithm elements;  // the same where nothing of four bits is in bytes yet: what results are compared with
    Target target;
    std::optional<Schedule> schedule;            // none: every stage at root, in plain loops
    std::vector<Schedule> ancestry;              // the schedule, its parent, …
    Match match;                                 // how the schedule was come by
    std::vector<std::filesystem::path> watched;  // beside the ancestry's files: what the choice of schedules depends on
    AppliedSchedule applied;                     // with those of callees
    std::vector<CalleeMatch> callee_matches;     // of calls that the schedule says nothing of
    ResolvedSchedule resolved;                   // of it
    Kernel kernel;                               // one variant for each condition that can hold; the last has none
    std::vector<Kernel> packings;                // one for each operand that it takes packed: "<kernel>_pack_<operand>"

    std::vector<Kernel> kernels() const;  // all, the kernel first
};

// Each step by itself.
// The algorithm that the options give, or name: of the registry or in a file (algorithm_file.h); `complete` gets a value for each of its
// options. UserError as Registry::make and read_algorithm, command.numerics: others than a file's own.
Algorithm load_algorithm(const Registry &registry, const KernelOptions &options, Options *complete = nullptr);
// A name, a file that ends in ".json", or "none". UserError as Library::find and read_schedule.
std::optional<Schedule> named_schedule(const std::string &name, const Library &library);

// Takes a schedule for a kernel that is declared, bound and has a target: its ancestry and what it resolves to, with its callees'.
void take_schedule(PreparedKernel &prepared, const Schedule &schedule, const Library &library, bool family_only);

// All of them: load algorithm, bind shape, load schedule, check, lower, verify tiles. Says on stderr which schedule was
// taken when none was named, unless quiet. `name` is the kernel's ("" for the algorithm's own): a C identifier.
PreparedKernel prepare(const Registry &registry, const KernelOptions &options, const std::string &name = "");
// The same for each target of the list in options.target, best first; `schedules` maps targets to schedules that differ from
// options.schedule. UserError also command.schedule-for and those of targets_named.
std::vector<PreparedKernel> prepare_all(const Registry &registry, const KernelOptions &options,
                                        const std::map<std::string, std::string> &schedules, const std::string &name = "");
// The first half: all that needs no lowering. UserError command.one-target when options.target is a list.
PreparedKernel prepare_schedule(const Registry &registry, const KernelOptions &options);

// The variant that the library runs for these extents.
const KernelVariant &variant_for(const Kernel &kernel, const Extents &extents);

// The schedule's knobs for these extents.
KnobsByStage knobs_for(const PreparedKernel &prepared, const Extents &extents);

}  // namespace tessera

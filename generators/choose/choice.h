// The schedule that a kernel takes, and all that was found out on the way to it. Choosing may have to compile a kernel to know that a
// schedule applies; then the choice keeps it, so that nothing is lowered twice.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "generators/choose/best_match.h"
#include "generators/registry/kernel_request.h"

namespace tessera {

// Nothing in it changes after it is made.
struct Choice {
    Match match;                                 // none: every stage at root, in plain loops
    AppliedSchedule applied;                     // with those of callees
    std::vector<CalleeMatch> callees;            // of calls that the schedule says nothing of
    std::vector<std::filesystem::path> watched;  // beside the ancestry's files: what the choice depends on
    std::optional<Compiled> compiled;            // where it had to be made
    std::vector<Note> notes;
};

// As the options say: a schedule by its name or file, none, a derived one, or the best match, and where there is none a derived one. The
// observer is told each note at once. UserErrors of Library::find, read_schedule, Chooser, derived_schedule, applied_schedule, check and
// check_requires.
Choice choose(const Registry &registry, const KernelOptions &options, const KernelRequest &request,
              const PreparationObserver &observer = {});

// This schedule. UserErrors of Chooser::take.
Choice choice_of(const Schedule &schedule, const KernelRequest &request, const Library &library, bool family_only);

// The schedule's knobs for these extents.
KnobsByStage knobs_for(const KernelRequest &request, const Choice &choice, const Extents &extents);

// A name, a file that ends in ".json", or "none". UserError as Library::find and read_schedule.
std::optional<Schedule> named_schedule(const std::string &name, const Library &library);

}  // namespace tessera

// The schedule of a kernel that no artifact fits: derived from its algorithm by the cost model (autotune/search/derive.h), and kept in a
// file by the hash of all that it depends on, so that it is derived once.
//
// Files lie in the folder that the environment variable TESSERA_CACHE names, otherwise in $XDG_CACHE_HOME/tessera, otherwise in
// ~/.cache/tessera; TESSERA_CACHE= keeps none. A file that cannot be read or written is not there.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>

#include "generators/choose/best_match.h"
#include "generators/registry/kernel_request.h"
#include "generators/registry/registry.h"
#include "schedules/artifact/artifact.h"
#include "schedules/target/target.h"

namespace tessera {

struct DerivedSchedule {
    Schedule schedule;                       // "<algorithm>/<numerics>/<target>", which a kernel takes as a family's where it is checked in
    std::shared_ptr<const MadeKernel> made;  // of it
    size_t candidates = 0;                   // that the model judged; 0 where the file was there already
    double seconds = 0;
    std::optional<std::filesystem::path> file;  // where it is kept
    bool inherits_any = false;
};

// "<algorithm>/<numerics>/<target>"
std::string derived_name(const KernelRequest &request, const Target &target);

// The stages that use a schedule of what the request's algorithm was made of, by role, and nothing of others; nothing where it fits none.
std::optional<Schedule> inherited_schedule(const Schedule &inherits, const KernelRequest &request, Chooser &chooser);

// `inherits`: the schedule of what the request's algorithm was made of. Stages with a role there use it, as far as it fits; where it does
// not for any, `inherits_any` is false.
//
// `extents` are those that dims which are not fixed mostly have, as far as the user says. `machine_independent` is the request's target
// with nothing of this machine in it. `chooser` is for the request's target. UserError as all_extents and Chooser::make.
DerivedSchedule derived_schedule(const Registry &registry, const KernelRequest &request, const Extents &extents,
                                 const Target &machine_independent, Chooser &chooser, const PreparationObserver &observer = {},
                                 const std::optional<Schedule> &inherits = {});

}  // namespace tessera

// The schedule of a kernel that no artifact fits: derived from its algorithm by the cost model (autotune/search/derive.h), and kept in a
// file by the hash of all that it depends on, so that it is derived once.
//
// Files lie in the folder that the environment variable TESSERA_CACHE names, otherwise in $XDG_CACHE_HOME/tessera, otherwise in
// ~/.cache/tessera; TESSERA_CACHE= keeps none. A file that cannot be read or written is not there.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "algorithms/ir/algorithm.h"
#include "generators/kernel/registry.h"
#include "schedules/artifact/artifact.h"
#include "schedules/target/target.h"

namespace tessera {

struct DerivedSchedule {
    Schedule schedule;      // "<algorithm>/<numerics>/<target>", which best_match takes as a family's where it is checked in
    size_t candidates = 0;  // that the model judged; 0 where the file was there already
    double seconds = 0;
    std::optional<std::filesystem::path> file;  // where it is kept
};

// `declared` as its author wrote it, `fixed` the dims that the kernel fixes, `extents` those that others mostly have, as far as the user
// says. `machine_independent` is the target with nothing of this machine in it. UserError as all_extents.
DerivedSchedule derived_schedule(const Registry &registry, const Algorithm &declared, const Extents &fixed, const Extents &extents,
                                 const Target &machine_independent);

}  // namespace tessera

// The schedule that a kernel takes when nobody names one. For each target whose code the kernel's target runs, nearest first:
//
//   exact    an artifact <algorithm>/<numerics>/<target>/… that was tuned for this kernel: the same options, the same dims fixed,
//            at the same extents
//   nearest  one that fixes no other dims, and was tuned with extents of all that the kernel fixes, each within 4 times the kernel's;
//            the one whose extents are nearest (shape_distance)
//   family   <algorithm>/<numerics>/<target>, then <algorithm>/<type of storage>/<target>, then <algorithm>/<target>; the latter are made
//            for f32, and other numerics take those that are not their own where they fit their stages
//   derived  where there is none of these, what the cost model chooses (derived_schedule.h); not found here
//
// What was measured goes before what a cost model chose alone, however near that is. Of equally near artifacts the one for fewer
// threads is taken, then the one tuned with the larger dynamic extents, then the first by name. One that no longer applies or cannot be
// read is passed over, and so is one that takes operands packed ahead of time, which changes the kernel's arguments.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/build/option.h"
#include "algorithms/ir/algorithm.h"
#include "generators/kernel/applied_schedule.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/provenance.h"
#include "schedules/target/target.h"

namespace tessera {

// The target's name, then those of the targets whose features it has too, nearest first.
std::vector<std::string> nearest_targets(const Target &target);

struct Match {
    enum class How { named, exact, nearest, family, derived, none } how = How::none;
    std::optional<Schedule> schedule;
    Extents tuned_for;                     // what the nearest was tuned with, of the dims that the kernel fixes
    bool is_predicted = false;             // a cost model chose it alone, nothing was measured
    std::vector<std::string> passed_over;  // artifacts that were nearer, with why they do not apply
    std::vector<std::string> targets;      // looked through, up to the one that had it
};
const char *name_of(Match::How how);

// `fixed` are the dims that the kernel fixes.
Match best_match(const Algorithm &declared, const Options &options, const Extents &fixed, const Target &target, const Library &library);
// The family's alone.
Match family_match(const Algorithm &declared, const Target &target, const Library &library);

// Either of them, where a family's schedule is taken only if it applies: a callee, or an algorithm of a file, may have the name of one that
// it is not. It has no options.
Match applying_match(const Algorithm &declared, const Extents &fixed, const Target &target, const Library &library, bool family_only);

// What a call took of which its caller says nothing.
struct CalleeMatch {
    std::string scope;
    Algorithm callee;
    Match match;
};
// The match that applies to a callee. Each is added to `matches`, if that is given, which like `target` and `library` outlives it.
MatchCallee callees_matched(const Target &target, const Library &library, bool family_only, std::vector<CalleeMatch> *matches = nullptr);

// What the choice depends on, for a build system: the files that were considered, and the folders whose listing tells whether
// there are nearer ones. Where a folder is not there yet, the nearest one above it that is.
std::vector<std::filesystem::path> looked_at(const Algorithm &declared, const Match &match,
                                             const std::vector<std::filesystem::path> &folders);

}  // namespace tessera

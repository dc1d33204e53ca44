// The schedule that a kernel takes when nobody names one. For each target whose code the kernel's target runs, nearest first:
//
//   exact    an artifact <algorithm>/<numerics>/<target>/… that was tuned for this kernel: the same options, the same dims fixed,
//            at the same extents
//   nearest  one that fixes no other dims, and was tuned with extents of all that the kernel fixes, each within 4 times the kernel's;
//            the one whose extents are nearest (shape_distance)
//   family   <algorithm>/<numerics>/<target>, then <algorithm>/<type of storage>/<target>, then <algorithm>/<target>; the latter are made
//            for f32, and other numerics take those that are not their own where they fit their stages
//   inherited  where there is none of these, and the algorithm was made of another, such as a gradient: what that one takes, by the roles
//            that stages have (callee_schedules.h), and derived for other folds; not found here
//   derived  where there is none of these, what the cost model chooses (derived_schedule.h); not found here
//
// What was measured goes before what a cost model chose alone, however near that is. Of equally near artifacts the one for fewer
// threads is taken, then the one tuned with the larger dynamic extents, then the first by name. One that no longer applies or cannot be
// read is passed over, and so is one that takes operands packed ahead of time, which changes the kernel's arguments. A policy with words,
// f32+contraction, takes its own artifacts and those of the policy without them, of equally near ones its own: they change no stages.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/build/option.h"
#include "algorithms/ir/algorithm.h"
#include "compiler/compile/compile.h"
#include "generators/choose/applied_schedule.h"
#include "generators/choose/preparation_observer.h"
#include "schedules/artifact/library.h"
#include "schedules/artifact/provenance.h"
#include "schedules/target/target.h"

namespace tessera {

struct MadeKernel;

// Which schedule, and how it was come by.
struct Match {
    enum class How { named, exact, nearest, family, inherited, derived, none } how = How::none;
    std::optional<Schedule> schedule;
    Extents tuned_for;                         // what the nearest was tuned with, of the dims that the kernel fixes
    bool is_predicted = false;                 // a cost model chose it alone, nothing was measured
    std::vector<std::string> passed_over;      // artifacts that were nearer, with why they do not apply
    std::vector<std::string> targets;          // looked through, up to the one that had it
    std::shared_ptr<const MadeKernel> made{};  // where it was compiled, to know that it applies
};
const char *name_of(Match::How how);

// What a call took of which its caller says nothing.
struct CalleeMatch {
    std::string scope;
    Algorithm callee;
    Match match;
};

// A schedule as a kernel takes it, with what its calls took.
struct TakenSchedule {
    AppliedSchedule applied;
    std::vector<CalleeMatch> callees;
};

// And the kernel that it makes.
struct MadeKernel {
    TakenSchedule taken;
    Compiled compiled;
};

// Chooses among the schedules of one library for kernels of one target; both outlive it. It remembers what each callee took, by meaning
// and fixed extents: one that is called often, or whose callers are tried often, is chosen once.
class Chooser {
public:
    // `family_only`: nothing that was tuned for a shape, for callees neither.
    Chooser(const Library &library, const Target &target, bool family_only = false, PreparationObserver observer = {});

    // `fixed` are the dims that the kernel fixes.
    Match best(const Algorithm &declared, const Options &options, const Extents &fixed);
    const Library &library() const { return library_; }
    // What the algorithm of this name was made of, whose schedules its stages may use.
    void set_made_of(const std::string &algorithm, std::shared_ptr<const MadeOf> made_of) { made_of_[algorithm] = std::move(made_of); }
    // The family's alone.
    Match family(const Algorithm &declared, const Extents &fixed = {});
    // Either of them, as the constructor says, of an algorithm with options: a family's schedule may not fit all of them, and is then
    // passed over.
    Match fitting(const Algorithm &declared, const Options &options, const Extents &fixed = {});
    // Either of them, as the constructor says, where a family's schedule is taken only if it applies and packs nothing ahead: a callee, or
    // an algorithm of a file, may have the name of one that it is not. It has no options.
    Match applying(const Algorithm &declared, const Extents &fixed);

    // UserError as applied_schedule.
    TakenSchedule take(const Schedule &schedule, const Algorithm &declared, const Extents &fixed);
    // UserErrors of take, check and compile.
    MadeKernel make(const Schedule &schedule, const Algorithm &declared, const Extents &fixed);

private:
    struct Trial;
    using Tuned = std::function<bool(Match &, const std::vector<std::string> &)>;
    using CalleeKey = std::tuple<std::string, std::string, std::string, std::string, Extents>;

    const Library &library_;
    const Target &target_;
    bool family_only_;
    PreparationObserver observer_;
    std::map<CalleeKey, Match> callees_;
    std::map<std::string, std::shared_ptr<const MadeOf>> made_of_;  // by name

    Trial tried(const Schedule &schedule, const Algorithm &declared, const Extents &fixed, std::shared_ptr<const MadeKernel> made = {},
                bool may_pack_ahead = false);
    // The match, or none where the family's schedule that it found makes no kernel.
    Match tried_family(Match match, const Algorithm &declared, const Extents &fixed, bool may_pack_ahead);
    Match match_callee(const Algorithm &callee, const Extents &fixed);
    bool take_family(Match &match, const Algorithm &declared, const Extents &fixed, const std::vector<std::string> &names);
    Match matched(const Algorithm &declared, const Extents &fixed, const Tuned &tuned);
};

// What the choice depends on, for a build system: the files that were considered, and the folders whose listing tells whether
// there are nearer ones. Where a folder is not there yet, the nearest one above it that is.
std::vector<std::filesystem::path> looked_at(const Algorithm &declared, const Match &match,
                                             const std::vector<std::filesystem::path> &folders);

}  // namespace tessera

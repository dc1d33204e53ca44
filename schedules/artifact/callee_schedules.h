// Schedules of callees, applied where they are called. A schedule of a program with calls says by a call's scope which one that is:
//
//     "up": {"use": "linear_gelu/avx512"}, "up.acc": {"micro": {"M": 6}}
//
// What linear_gelu/avx512 and its ancestors state is renamed to the caller's names (stage acc to up.acc, dim N to the F that it is
// bound to) and stands below the schedule's own chain, as one more ancestor: a value replaces, null deletes, by the rules of merge.h.
//
//   "use": "none", or nothing but stages of the call   what is said of the call alone
//   nothing is said of the call                        the schedule that CalleeRules::match gives, if any
//
// A stage of an algorithm that was made of another, such as a product of a gradient, may use a schedule of that one: what the stage whose
// role it has takes there is renamed by role (inherited_fields.h), and stands below in the same way. Of that schedule's variants it has the
// first that applies whatever the extents are which are not fixed.
//
//     "w.grad": {"use": "linear/avx512"}
//
// A callee's schedule may use others for its own calls; "up.inner": {"use": …} chooses another there. Where callees' schedules have
// variants, the merged one has a variant for each combination of them, in order.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/ir/algorithm.h"
#include "algorithms/transform/roles.h"
#include "schedules/artifact/fields.h"
#include "schedules/artifact/library.h"
#include "schedules/knobs/schedule.h"

namespace tessera {

// The algorithm that another was made of, and what stages of the latter do there.
struct MadeOf {
    Algorithm algorithm;
    std::vector<StageRole> roles;
};

// What the room above knows of callees. Each may be missing.
struct CalleeRules {
    // The schedule of a callee that nothing is said of. `fixed` are the extents that its caller knows, by the callee's dims.
    std::function<std::optional<Schedule>(const std::string &scope, const Algorithm &callee, const Extents &fixed)> match;
    // Throws a UserError where a schedule that is used by name does not apply to the callee.
    std::function<void(const ResolvedSchedule &schedule, const Algorithm &callee)> check;
    std::shared_ptr<const MadeOf> made_of = {};
};

// A schedule that a call takes, or a stage by its role.
struct CalleeSchedule {
    std::string scope;               // of the call, with those around it: "ffn.up"; or the stage
    std::vector<Schedule> ancestry;  // the schedule, its parent, …
    bool is_named = false;           // by "use"; otherwise it matched
};

struct ProgramSchedule {
    ResolvedSchedule resolved;  // without `use`
    Fields fields;              // of where no variant holds; a callee's are set by "linear_gelu/avx512 at up"
    std::vector<CalleeSchedule> callees;
    std::vector<std::string> left_out;  // what stages take not of the schedules that they use by role, with why
};

// `resolve` for a program; the same where it calls nothing. `fixed` are extents that the kernel fixes. UserError as resolve, and
// schedule.use for a schedule that does not apply to its callee, schedule.missing-callee, schedule.cycle, schedule.variants.
ProgramSchedule resolve_program(const Schedule &schedule, const Algorithm &declared, const Extents &fixed, const Library &library,
                                const CalleeRules &rules);

// The schedule with everything that it inherits and uses: it extends nothing, uses nothing, and resolves to an equal value.
Schedule flatten(const Schedule &schedule, const ProgramSchedule &program, const Algorithm &declared);

}  // namespace tessera

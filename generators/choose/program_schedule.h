// A schedule for a program of calls that no artifact fits: each callee has one of its own, which ships or is derived for the extents of its
// calls. Folds that stand between the calls have derived knobs of their own, and other stages go in vectors. A program that was derived as
// a whole would be one space of hundreds of stages.
#pragma once
#include "autotune/search/derive.h"
#include "generators/choose/best_match.h"
#include "generators/registry/kernel_request.h"

namespace tessera {

struct ProgramDerivation {
    Schedule schedule;                      // it uses nothing: what callees take is written out
    std::optional<Schedule> without_folds;  // the same with plain loops for the program's own folds, where it has any
    size_t candidates = 0;
};

// Schedules of what the request's algorithm was made of, by the stages that use them by role.
using UsesByStage = std::map<std::string, std::string>;

// `extents` are those of dynamic dims, as far as the user says; the others are middle ones. Nothing is derived for stages that use another
// schedule by role; where nothing is called they are stated so. UserError as callees_of and flatten.
ProgramDerivation program_schedule(const KernelRequest &request, const Extents &extents, const Target &target, CostModel &model,
                                   Chooser &chooser, const DeriveProgress &progress, const UsesByStage &uses = {});

}  // namespace tessera

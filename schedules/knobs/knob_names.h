// Knobs in other names: every place where knobs name a dim, a loop, a stage or a tensor, in one function.
#pragma once
#include <functional>
#include <string>

#include "schedules/knobs/schedule.h"

namespace tessera {

struct KnobNames {
    std::function<std::string(const std::string &dim)> dim;                               // of the knobs' own stage
    std::function<std::string(const std::string &stage, const std::string &loop)> loop;   // of a stage; "": the knobs' own
    std::function<std::string(const std::string &operand, const std::string &dim)> axis;  // of an operand's layout
    std::function<std::string(const std::string &name)> stage, tensor;
};

Knobs renamed(const Knobs &knobs, const KnobNames &names);

// The same names, with those of the stages that the packs of `stages` add: "acc.w.packed" has both a stage and an operand in it.
KnobNames with_packed_stages(const KnobNames &names, const KnobsByStage &stages);
// Every stage's knobs and its name.
KnobsByStage renamed(const KnobsByStage &stages, const KnobNames &names);

}  // namespace tessera

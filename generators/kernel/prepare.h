// From the command line's words to kernels: the steps that generate, show, verify and bench share.
//
//     KernelOptions ─► KernelRequest ─► Choice ─► Compiled
//       words           what is asked    which      the kernel
//                                        schedule
//
// Each step gives a value that does not change afterwards. Nothing is printed: notes are in the values, and an observer is told them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/compile/compile.h"
#include "compiler/compile/variants.h"
#include "generators/choose/choice.h"

namespace tessera {

// What is known before anything has to be lowered.
struct ScheduledKernel {
    KernelRequest request;
    Choice choice;
};

struct PreparedKernel {
    KernelRequest request;
    Choice choice;  // its `compiled` is below
    Compiled compiled;
};

// Requests, chooses and compiles. `name` is the kernel's ("" for the algorithm's own): a C identifier. UserErrors of request_of, choose,
// compile and named; command.one-target when options.target is a list.
PreparedKernel prepare(const Registry &registry, const KernelOptions &options, const std::string &name = "",
                       const PreparationObserver &observer = {});
// The same for each target of the list in options.target, best first; `schedules` maps targets to schedules that differ from
// options.schedule. UserError also command.schedule-for and those of targets_named.
std::vector<PreparedKernel> prepare_all(const Registry &registry, const KernelOptions &options,
                                        const std::map<std::string, std::string> &schedules, const std::string &name = "",
                                        const PreparationObserver &observer = {});
// Requests and chooses. UserError as prepare.
ScheduledKernel prepare_schedule(const Registry &registry, const KernelOptions &options, const PreparationObserver &observer = {});

// Compiles what was chosen, where choosing has not done so.
PreparedKernel compiled_as_chosen(KernelRequest request, Choice choice, const PreparationObserver &observer = {});

}  // namespace tessera

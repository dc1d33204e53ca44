// The one way from an algorithm and a schedule to a kernel: check, lower each variant, prove, and pack. Whoever makes a kernel, or asks
// whether a schedule can make one, calls this and keeps what it gives.
//
//     bound algorithm ─┐
//     resolved schedule ├─► compile ─► Compiled: kernel, packings, notes
//     target ───────────┘
#pragma once
#include <string>
#include <vector>

#include "compiler/compile/lower_variants.h"

namespace tessera {

// Nothing in it changes after it is made. Every index of every program in it is proved.
struct Compiled {
    ResolvedSchedule schedule;
    Kernel kernel;                 // one variant for each condition that can hold; the last has none
    std::vector<Kernel> packings;  // one for each operand that it takes packed: "<kernel>_pack_<operand>"
    std::vector<Note> notes;       // what is unwise of the schedule

    std::vector<Kernel> kernels() const;  // all, the kernel first
};

// `bound` is the algorithm with its fixed dims, by whose name the kernel is called. `observe` is told of each variant that is lowered.
// UserErrors of check, check_requires, lower_variants and verify; schedule.unproved where an index cannot be proved to be inside.
Compiled compile(const Algorithm &bound, const ResolvedSchedule &schedule, const Target &target, const ObserveVariant &observe = {});

// The same, by another name. UserError emit.name: one that no C function can have, or two functions that pack would have one name.
Compiled named(Compiled compiled, const std::string &name);

}  // namespace tessera

// How long a profile takes at best, by the rates of the target: the draft that a learned model corrects, and the bound that a
// search is measured against (Williams, Waterman, Patterson, "Roofline", CACM 2009).
#pragma once
#include "bench/measure/work.h"
#include "costmodel/features/profile.h"

namespace tessera {

// The rates of one core. Those that `doctor --calibrate` measured, where the target has them; otherwise what processors of its kind
// have at 3 GHz.
struct Rates {
    double fma = 6e9;     // vector multiply-adds in a second
    double l1 = 3.84e11;  // bytes in a second out of the first level; where it is not measured, as many as two loads take
    double read[3] = {1.8e11, 8e10, 2.5e10};  // bytes in a second out of the second level, the third, memory
    double parallel_loop_s = 5e-6;            // to start and join threads
};
Rates rates_of(const Target &target);

// Seconds for one call, from the program: the busiest of core and levels, with what the others add to it.
double predicted_seconds(const Profile &profile, const Rates &rates, int threads);

// What the program itself has left to do, whatever the algorithm declares: its float instructions, as operations of whole vectors, and what
// it writes.
Work work_left(const Profile &profile, const Target &target);

// Seconds below which no schedule of the algorithm can go: its operations at the peaks of `threads` cores, and for each cache level what
// it cannot hold of the arguments at the rate of the next. Of a target that nobody calibrated, as on the fastest processors of its kind, so
// that it is far from what others reach.
double bound_seconds(const Work &work, const Target &target, int threads);

}  // namespace tessera

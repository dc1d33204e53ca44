// Seconds below which nothing goes that has so much to compute and to move (Williams, Waterman, Patterson, "Roofline", CACM 2009). Plain
// numbers, so that programs without the compiler link it too.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "bench/measure/peak.h"

namespace tessera {

// How operations may be computed: as fast as a peak, where that is known; otherwise so many times as fast as those of f32.
struct Way {
    std::optional<Peak> peak = {};
    double of_f32 = 1;
};
// Operations for which the fastest of these ways counts.
struct OperationsByWays {
    double operations = 0;
    std::vector<Way> ways = {Way{}};
};

// What cores do at most.
struct MachineLimits {
    std::array<double, 4> peaks{};   // operations in a second on one core, by Peak; 0 where it is not known. That of f32 is
    std::array<double, 3> caches{};  // bytes of the first, second and third level; the third is shared by all cores
    std::array<double, 4> read{};    // bytes in a second to one core out of the three levels and of memory
    double read_by_all = 0;          // bytes in a second out of memory to all cores together
};

// The operations at the peaks of `threads` cores, and for each level what it cannot hold of `bytes` at the rate of the next; the slowest.
double bound_seconds(const std::vector<OperationsByWays> &work, double bytes, const MachineLimits &limits, int threads);

}  // namespace tessera

#include "bench/measure/bound.h"

#include <algorithm>

namespace tessera {

static double fastest_of(const std::vector<Way> &ways, const MachineLimits &limits) {
    double fastest = 0;
    for (const Way &way : ways) {
        const double peak = way.peak ? limits.peaks[*way.peak] : 0;
        fastest = std::max(fastest, peak > 0 ? peak : limits.peaks[PEAK_F32] * way.of_f32);
    }
    return fastest;
}

double bound_seconds(const std::vector<OperationsByWays> &work, double bytes, const MachineLimits &limits, int threads) {
    double computing = 0;
    for (const OperationsByWays &some : work)
        if (some.operations > 0) computing += some.operations / (fastest_of(some.ways, limits) * threads);
    // Each core has its own first and second level.
    const std::array<double, 4> beyond = {bytes, bytes - limits.caches[0] * threads, bytes - limits.caches[1] * threads,
                                          bytes - limits.caches[2]};
    const double memory = threads > 1 ? std::max(limits.read[3], limits.read_by_all) : limits.read[3];
    return std::max({computing, beyond[0] / (limits.read[0] * threads), beyond[1] / (limits.read[1] * threads),
                     beyond[2] / (limits.read[2] * threads), beyond[3] / memory, 1e-9});
}

}  // namespace tessera

#include "costmodel/roofline.h"

#include <algorithm>
#include <cmath>

namespace tessera {

Rates rates_of(const Target &target) {
    Rates rates;
    if (!target.measured) return rates;
    const Measured &m = *target.measured;
    if (auto peak = m.peaks.find("f32"); peak != m.peaks.end() && peak->second.one_thread > 0) rates.fma = peak->second.one_thread / (2.0 * target.vector_bytes / 4);
    const char *names[] = {"l2", "l3", "memory"};
    for (int i = 0; i < 3; i++)
        if (auto rate = m.read.find(names[i]); rate != m.read.end() && rate->second.one_thread > 0) rates.read[i] = rate->second.one_thread;
    if (m.parallel_loop_s > 0) rates.parallel_loop_s = m.parallel_loop_s;
    return rates;
}

double predicted_seconds(const Profile &p, const Rates &rates, int threads) {
    const double workers = std::max(1.0, std::min<double>(threads, p.parallel) / p.imbalance);
    constexpr double translation = 16;  // multiply-adds' issue slots
    constexpr double streams = 16, alone = 1.8;  // rows at one time that a prefetcher follows; how much longer the others take
    const double far = p.inner_rows > streams ? alone : 1;
    const double needs[] = {p.core_time / rates.fma / workers, p.traffic[0] / rates.read[0] / workers, far * p.traffic[1] / rates.read[1] / workers, far * p.traffic[2] / rates.read[2], translation * p.translations / rates.fma / workers};
    // Units overlap, but never wholly: a norm between the largest and the sum.
    double sum = 0;
    for (double n : needs) sum += n * n * n;
    const double loops = 0.5 * p.iterations / rates.fma / workers;
    return std::cbrt(sum) + loops + (threads > 1 ? p.regions * rates.parallel_loop_s : 0) + 1e-9;
}

double bound_seconds(const Work &work, const Target &target, int threads) {
    const Rates rates = rates_of(target);
    const double peak = rates.fma * 2 * target.vector_bytes / 4 * threads;
    const double held[] = {static_cast<double>(target.l2_bytes), static_cast<double>(target.l3_bytes)};
    const int level = work.bytes <= held[0] ? 0 : work.bytes <= held[1] ? 1 : 2;
    return std::max({work.operations.value_or(0) / peak, work.bytes / (rates.read[level] * (level < 2 ? threads : 1)), 1e-9});
}

}  // namespace tessera

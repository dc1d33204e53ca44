#include "costmodel/features/roofline.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/instructions/families.h"

namespace tessera {

Rates rates_of(const Target &target) {
    Rates rates;
    rates.l1 = rates.fma * target.vector_bytes;
    if (!target.measured) return rates;
    const Measured &m = *target.measured;
    if (auto peak = m.peaks.find("f32"); peak != m.peaks.end() && peak->second.one_thread > 0)
        rates.fma = peak->second.one_thread / (2.0 * target.vector_bytes / 4);
    if (auto rate = m.read.find("l1"); rate != m.read.end() && rate->second.one_thread > 0) rates.l1 = rate->second.one_thread;
    const char *names[] = {"l2", "l3", "memory"};
    for (int i = 0; i < 3; i++)
        if (auto rate = m.read.find(names[i]); rate != m.read.end() && rate->second.one_thread > 0) rates.read[i] = rate->second.one_thread;
    if (m.parallel_loop_s > 0) rates.parallel_loop_s = m.parallel_loop_s;
    return rates;
}

// Traffic and translations of code outside of parallel loops are taken as shared among threads too: the profile has their sums alone.
double predicted_seconds(const Profile &p, const Rates &rates, int threads) {
    // As many as the iterations keep busy while the thread that has most of them works.
    const double workers = p.parallel / std::ceil(p.parallel / threads);
    const double core_time = p.alone + (p.core_time - p.alone) / workers;
    constexpr double translation = 16;           // multiply-adds' issue slots
    constexpr double streams = 16, alone = 1.8;  // rows at one time that a prefetcher follows; how much longer the others take
    const double far = p.inner_rows > streams ? alone : 1;
    const double needs[] = {core_time / rates.fma, p.traffic[0] / rates.read[0] / workers, far * p.traffic[1] / rates.read[1] / workers,
                            far * p.traffic[2] / rates.read[2], translation * p.translations / rates.fma / workers};
    // Units overlap, but never wholly: a norm between the largest and the sum.
    double sum = 0;
    for (double n : needs) sum += n * n * n;
    const double loops = 0.5 * p.iterations / rates.fma / workers;
    return std::cbrt(sum) + loops + (threads > 1 ? p.regions * rates.parallel_loop_s : 0) + 1e-9;
}

Work work_left(const Profile &p, const Target &target) {
    Work work;
    work.operations = (2 * (p.fma + p.grouped) + p.arithmetic + p.slow) * target.vector_bytes / 4;
    work.bytes = p.written_bytes;
    return work;
}

static std::optional<double> measured_peak(const std::string &name, const Target &target) {
    if (!target.measured) return {};
    const auto peak = target.measured->peaks.find(name);
    return peak == target.measured->peaks.end() || peak->second.one_thread <= 0 ? std::nullopt : std::optional(peak->second.one_thread);
}

// Operations in a second on one core by the family's instruction, where f32's are `f32`.
static double peak_of(const Instruction &family, const Target &target, double f32) {
    const auto [instructions, slots] = cost_of(family, target);
    if (instructions == 1)
        if (const std::optional<double> peak = measured_peak(family.peak, target)) return *peak;
    // Where a step has several instructions, sums go where no products do: half of them count.
    return f32 * family.shape.k / (slots * (instructions == 1 ? 1 : instructions / 2.0));
}

// The same of what a family could compute, by the best of those with its operands, which can be widened to f32 too.
static double best_peak(const Instruction &family, const Target &target, double f32) {
    double best = f32;
    for (const Instruction &other : families())
        if (is_emitted(other) && is_on(other, target) && other.accumulator == family.accumulator && other.first == family.first &&
            other.second == family.second)
            best = std::max(best, peak_of(other, target, f32));
    return best;
}

double bound_seconds(const Work &work, const Target &target, int threads) {
    const Rates rates = rates_of(target);
    // Clocks are up to twice as fast as those that rates are assumed of.
    const double fastest = target.measured ? 1 : 2, cores = fastest * threads;
    const double f32 = rates.fma * 2 * target.vector_bytes / 4;
    double seconds = 0, others = 0;
    seconds += work.f64 / (measured_peak("f64", target).value_or(f32 / 2) * cores), others += work.f64;
    for (const auto &[family, operations] : work.by_family)
        seconds += operations / (best_peak(*find_family(family), target, f32) * cores), others += operations;
    seconds = work.operations ? seconds + (*work.operations - others) / (f32 * cores) : 0;
    // Each core has its own first and second level.
    const double beyond[] = {work.bytes, work.bytes - static_cast<double>(target.l1_bytes * threads),
                             work.bytes - static_cast<double>(target.l2_bytes * threads),
                             work.bytes - static_cast<double>(target.l3_bytes)};
    double memory = fastest * rates.read[2];
    if (target.measured && threads > 1)
        if (auto rate = target.measured->read.find("memory"); rate != target.measured->read.end())
            memory = std::max(memory, rate->second.all_threads);
    return std::max({seconds, beyond[0] / (rates.l1 * cores), beyond[1] / (rates.read[0] * cores), beyond[2] / (rates.read[1] * cores),
                     beyond[3] / memory, 1e-9});
}

}  // namespace tessera

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

static std::optional<Peak> peak_named(const std::string &name) {
    const auto found = std::find(peak_names().begin(), peak_names().end(), name);
    return found == peak_names().end() ? std::nullopt : std::optional(static_cast<Peak>(found - peak_names().begin()));
}

// By the family's instruction. Where a step has several instructions, sums go where no products do: half of them count.
static Way way_of(const Instruction &family, const Target &target) {
    const auto [instructions, slots] = cost_of(family, target);
    if (instructions == 1) return {peak_named(family.peak), family.shape.k / slots};
    return {std::nullopt, family.shape.k / (slots * (instructions / 2.0))};
}

std::vector<OperationsByWays> by_ways(const Work &work, const Target &target) {
    std::vector<OperationsByWays> all;
    if (!work.operations) return all;
    double others = work.f64;
    if (work.f64 > 0) all.push_back({work.f64, {{PEAK_F64, 0.5}}});
    for (const auto &[name, operations] : work.by_family) {
        const Instruction &family = *find_family(name);
        std::vector<Way> ways = {Way{}};  // its operands can be widened to f32 too
        for (const Instruction &other : families())
            if (is_emitted(other) && is_on(other, target) && other.accumulator == family.accumulator && other.first == family.first &&
                other.second == family.second)
                ways.push_back(way_of(other, target));
        all.push_back({operations, ways}), others += operations;
    }
    all.push_back({*work.operations - others});
    return all;
}

static MachineLimits limits_of(const Target &target) {
    const Rates rates = rates_of(target);
    // Clocks are up to twice as fast as those that rates are assumed of.
    const double fastest = target.measured ? 1 : 2;
    MachineLimits limits;
    limits.peaks[PEAK_F32] = fastest * rates.fma * 2 * target.vector_bytes / 4;
    limits.caches = {static_cast<double>(target.l1_bytes), static_cast<double>(target.l2_bytes), static_cast<double>(target.l3_bytes)};
    limits.read = {fastest * rates.l1, fastest * rates.read[0], fastest * rates.read[1], fastest * rates.read[2]};
    if (!target.measured) return limits;
    for (const auto &[name, peak] : target.measured->peaks)
        if (const auto number = peak_named(name); number && *number != PEAK_F32) limits.peaks[*number] = peak.one_thread;
    if (auto memory = target.measured->read.find("memory"); memory != target.measured->read.end())
        limits.read_by_all = memory->second.all_threads;
    return limits;
}

double bound_seconds(const Work &work, const Target &target, int threads) {
    return bound_seconds(by_ways(work, target), work.bytes, limits_of(target), threads);
}

}  // namespace tessera

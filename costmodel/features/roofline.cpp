#include "costmodel/features/roofline.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/tile/instruction.h"

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

// Operations in a second on one core by this peak, where f32's is `f32`.
static double peak_of(const std::string &name, const Target &target, double f32) {
    const Instruction *family = name == "bf16"   ? &instruction_of(InstructionFamily::dot2)
                                : name == "u8s8" ? &instruction_of(InstructionFamily::dot4)
                                                 : nullptr;
    if (family && !is_on(*family, target)) return f32;
    const bool one = !family || instructions_of(*family, target) == 1;
    if (target.measured && one)
        if (auto peak = target.measured->peaks.find(name); peak != target.measured->peaks.end() && peak->second.one_thread > 0)
            return peak->second.one_thread;
    if (name == "f64") return f32 / 2;
    // Where a step has several instructions, sums go where no products do: half of them count.
    return family ? f32 * family->group / (one ? 1 : instructions_of(*family, target) / 2.0) : f32;
}

double bound_seconds(const Work &work, const Target &target, int threads) {
    const Rates rates = rates_of(target);
    // Clocks are up to twice as fast as those that rates are assumed of.
    const double fastest = target.measured ? 1 : 2, cores = fastest * threads;
    const double f32 = rates.fma * 2 * target.vector_bytes / 4;
    double seconds = 0, others = 0;
    for (const auto &[name, operations] : {std::pair{"f64", work.f64}, {"bf16", work.bf16}, {"u8s8", work.u8s8}})
        seconds += operations / (peak_of(name, target, f32) * cores), others += operations;
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

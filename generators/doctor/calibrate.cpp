#include "generators/doctor/calibrate.h"

#include <atomic>
#include <chrono>
#include <memory>

#include "bench/measure/machine_rates.h"
#include "generators/output/loaded_kernel.h"
#include "runtime/abi/tessera.h"
#include "support/text/error.h"

namespace tessera {

namespace {

Rate rate(const MachineRate &measured) { return {measured.one_thread, measured.all_threads, measured.spread}; }

// Every task waits for the others, so that each thread has to come; but not for ever, where a pool has fewer threads.
double parallel_loop_seconds(int threads, const Precision &precision) {
    using Clock = std::chrono::steady_clock;
    const std::unique_ptr<TessPool, decltype(&tess_pool_destroy)> pool(tess_pool_create(threads), tess_pool_destroy);
    require(pool != nullptr, "a pool of as many threads as the machine has can be made");
    struct Meeting {
        std::atomic<int64_t> arrived = 0;
        int64_t expected = 0;
    } meeting;
    const auto task = [](void *closure, int32_t, int32_t) {
        auto &m = *static_cast<Meeting *>(closure);
        if (m.arrived.fetch_add(1) + 1 == m.expected) return 0;
        for (const auto start = Clock::now(); m.arrived.load() < m.expected && Clock::now() - start < std::chrono::milliseconds(1);) {}
        return 0;
    };
    auto loops = [&](long n) {
        for (long i = 0; i < n; i++) {
            meeting.expected = meeting.arrived.load() + threads;
            pool->parallel_for(pool->state, task, &meeting, threads, threads);
        }
    };
    const long n = repetitions(loops, rate_round_s);
    return steady(
               1, [&](int) { loops(n); }, precision)
               .best_s /
           static_cast<double>(n);
}

}  // namespace

Target calibrated(const Target &target, const Machine &machine, const Precision &precision,
                  const std::function<void(const std::string &)> &note) {
    check_runs_here(target);
    Target t = target;
    if (const auto caches = cache_bytes(machine)) t.l1_bytes = caches->l1, t.l2_bytes = caches->l2, t.l3_bytes = caches->l3;
    Measured m;
    m.processor = machine.processor;
    m.threads = tess_cpu_count();
    for (size_t kind = 0; kind < peak_names().size(); kind++) {
        const std::string &name = peak_names()[kind];
        note("operations in " + name);
        if (const auto measured = peak_rate(static_cast<Peak>(kind), t.vector_bytes, m.threads, precision)) m.peaks[name] = rate(*measured);
    }
    Machine usable = machine;
    usable.threads = m.threads;
    for (const auto &[name, sets] : working_sets({t.l1_bytes, t.l2_bytes, t.l3_bytes}, usable)) {
        MovedMemory memory(sets, m.threads);
        for (const Move move : {Move::read, Move::copy}) {
            note((move == Move::read ? "reading " : "copying ") + name);
            (move == Move::read ? m.read : m.copy)[name] = rate(memory.rate(move, t.vector_bytes, precision));
        }
    }
    if (m.threads > 1) {
        note("parallel loops");
        m.parallel_loop_s = parallel_loop_seconds(m.threads, precision);
    }
    t.measured = m;
    return t;
}

}  // namespace tessera

#include "generators/doctor/calibrate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "bench/measure/bandwidth.h"
#include "bench/measure/peak.h"
#include "generators/output/loaded_kernel.h"
#include "runtime/abi/tessera.h"
#include "support/text/error.h"

namespace tessera {

namespace {

constexpr double round_s = 0.003;  // long beside the threads' meeting, short beside what interrupts them

Rate rate(const Steady &one, double one_amount, const Steady &all, double all_amount) {
    return {one_amount / one.best_s, all_amount / all.best_s, std::max(one.spread, all.spread)};
}

std::optional<Rate> peak(Peak kind, const Target &target, int threads, const Precision &precision) {
    if (peak_run(kind, target.vector_bytes, 1) == 0) return {};
    const long rounds = repetitions([&](long n) { peak_run(kind, target.vector_bytes, n); }, round_s);
    const double operations = peak_run(kind, target.vector_bytes, rounds);
    auto run = [&](int) { peak_run(kind, target.vector_bytes, rounds); };
    return rate(steady(1, run, precision), operations, steady(threads, run, precision), operations * threads);
}

// Memory for each thread, which touches it first itself, so that it lies near.
class Buffers {
public:
    Buffers(int threads, size_t bytes) : memory_(static_cast<size_t>(threads)), bytes_((bytes + 1023) / 1024 * 1024) {}
    void *of(int thread) {
        auto &memory = memory_[static_cast<size_t>(thread)];
        if (!memory) {
            memory.reset(std::aligned_alloc(64, bytes_));
            if (!memory) throw std::bad_alloc();
            std::memset(memory.get(), 1, bytes_);
        }
        return memory.get();
    }

private:
    struct Free {
        void operator()(void *memory) const { std::free(memory); }
    };
    std::vector<std::unique_ptr<void, Free>> memory_;
    size_t bytes_;
};

enum class Stream { read, copy };

// `threads` threads, each going over `bytes` bytes of its own, and how many bytes they move in one repetition.
struct Flow {
    Steady time;
    double bytes;
};
Flow flow(Stream stream, int threads, size_t bytes, int vector_bytes, const Precision &precision, Buffers &buffers) {
    bytes = std::max<size_t>(bytes / 1024, 1) * 1024;
    const size_t half = bytes / 2;
    auto once = [&](int thread, long passes) {
        void *memory = buffers.of(thread);
        if (stream == Stream::read) bandwidth_read(memory, bytes, vector_bytes, passes);
        else bandwidth_copy(static_cast<char *>(memory) + half, memory, half, vector_bytes, passes);
    };
    buffers.of(0);
    const long passes = repetitions([&](long n) { once(0, n); }, round_s);
    return {steady(
                threads, [&](int worker) { once(worker, passes); }, precision),
            static_cast<double>(bytes) * static_cast<double>(passes) * threads};
}

struct WorkingSets {
    size_t one, all;  // bytes of each thread, when it is alone and when all run
};

std::map<std::string, WorkingSets> working_sets(const Target &t, const Machine &machine) {
    const auto size = [](int64_t bytes) { return static_cast<size_t>(bytes); };
    std::map<std::string, WorkingSets> sets = {{"l1", {size(t.l1_bytes / 2), size(t.l1_bytes / 2)}}};
    if (t.l2_bytes > t.l1_bytes) sets["l2"] = {size(t.l2_bytes / 2), size(t.l2_bytes / 2)};
    const Cache *l3 = machine.cache(3);
    if (l3 && t.l3_bytes > t.l2_bytes) {
        const size_t share = std::max(size(t.l3_bytes / 2 / l3->threads), size(t.l2_bytes + t.l2_bytes / 2));
        sets["l3"] = {share, share};
    }
    const int64_t limit = std::max<int64_t>(machine.memory_bytes / 4, 16 << 20);
    const int64_t beyond = std::min(std::max<int64_t>(4 * t.l3_bytes, 64 << 20), limit);
    const int64_t all =
        std::max({beyond / machine.threads, 4 * t.l2_bytes, beyond * (l3 ? machine.threads / l3->threads : 1) / machine.threads});
    sets["memory"] = {size(beyond), size(std::min(all, limit / machine.threads))};
    return sets;
}

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
    const long n = repetitions(loops, round_s);
    return steady(
               1, [&](int) { loops(n); }, precision)
               .best_s /
           static_cast<double>(n);
}

void take_caches(Target &t, const Machine &machine) {
    const Cache *l1 = machine.cache(1), *l2 = machine.cache(2), *l3 = machine.cache(3);
    if (!l1) return;
    t.l1_bytes = l1->bytes;
    t.l2_bytes = std::max(l2 ? l2->bytes : 0, t.l1_bytes);
    t.l3_bytes = std::max(l3 ? l3->bytes : 0, t.l2_bytes);
}

}  // namespace

Target calibrated(const Target &target, const Machine &machine, const Precision &precision,
                  const std::function<void(const std::string &)> &note) {
    check_runs_here(target);
    Target t = target;
    take_caches(t, machine);
    Measured m;
    m.processor = machine.processor;
    m.threads = tess_cpu_count();
    const std::pair<const char *, Peak> kinds[] = {{"f32", PEAK_F32},   {"f64", PEAK_F64},           {"bf16", PEAK_BF16},
                                                   {"u8s8", PEAK_U8S8}, {"amx_bf16", PEAK_AMX_BF16}, {"amx_u8s8", PEAK_AMX_U8S8}};
    for (const auto &[name, kind] : kinds) {
        note(std::string("operations in ") + name);
        if (const auto measured = peak(kind, t, m.threads, precision)) m.peaks[name] = *measured;
    }
    Machine usable = machine;
    usable.threads = m.threads;
    for (const auto &[name, bytes] : working_sets(t, usable)) {
        Buffers buffers(m.threads, std::max(bytes.one, bytes.all));
        for (const Stream stream : {Stream::read, Stream::copy}) {
            note((stream == Stream::read ? "reading " : "copying ") + name);
            const Flow one = flow(stream, 1, bytes.one, t.vector_bytes, precision, buffers),
                       all = flow(stream, m.threads, bytes.all, t.vector_bytes, precision, buffers);
            (stream == Stream::read ? m.read : m.copy)[name] = rate(one.time, one.bytes, all.time, all.bytes);
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

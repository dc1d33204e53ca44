#include "bench/measure/machine_rates.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "bench/measure/bandwidth.h"

namespace tessera {

static MachineRate rate_of(const Steady &one, double one_amount, const Steady &all, double all_amount) {
    return {one_amount / one.best_s, all_amount / all.best_s, std::max(one.spread, all.spread)};
}

std::optional<MachineRate> peak_rate(Peak peak, int vector_bytes, int threads, const Precision &precision) {
    if (peak_run(peak, vector_bytes, 1) == 0) return {};
    const long rounds = repetitions([&](long n) { peak_run(peak, vector_bytes, n); }, rate_round_s);
    const double operations = peak_run(peak, vector_bytes, rounds);
    auto run = [&](int) { peak_run(peak, vector_bytes, rounds); };
    return rate_of(steady(1, run, precision), operations, steady(threads, run, precision), operations * threads);
}

std::optional<CacheBytes> cache_bytes(const Machine &machine) {
    const Cache *l1 = machine.cache(1), *l2 = machine.cache(2), *l3 = machine.cache(3);
    if (!l1) return {};
    CacheBytes bytes;
    bytes.l1 = l1->bytes;
    bytes.l2 = std::max(l2 ? l2->bytes : 0, bytes.l1);
    bytes.l3 = std::max(l3 ? l3->bytes : 0, bytes.l2);
    return bytes;
}

std::map<std::string, WorkingSets> working_sets(const CacheBytes &caches, const Machine &machine) {
    const auto size = [](int64_t bytes) { return static_cast<size_t>(bytes); };
    std::map<std::string, WorkingSets> sets = {{"l1", {size(caches.l1 / 2), size(caches.l1 / 2)}}};
    if (caches.l2 > caches.l1) sets["l2"] = {size(caches.l2 / 2), size(caches.l2 / 2)};
    const Cache *l3 = machine.cache(3);
    if (l3 && caches.l3 > caches.l2) {
        const size_t share = std::max(size(caches.l3 / 2 / l3->threads), size(caches.l2 + caches.l2 / 2));
        sets["l3"] = {share, share};
    }
    const int64_t limit = std::max<int64_t>(machine.memory_bytes / 4, 16 << 20);
    const int64_t beyond = std::min(std::max<int64_t>(4 * caches.l3, 64 << 20), limit);
    const int64_t all =
        std::max({beyond / machine.threads, 4 * caches.l2, beyond * (l3 ? machine.threads / l3->threads : 1) / machine.threads});
    sets["memory"] = {size(beyond), size(std::min(all, limit / machine.threads))};
    return sets;
}

// Memory for each thread, which touches it first itself, so that it lies near.
class MovedMemory::Buffers {
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

MovedMemory::MovedMemory(const WorkingSets &sets, int threads)
    : sets_(sets), threads_(threads), buffers_(std::make_unique<Buffers>(threads, std::max(sets.one, sets.all))) {}
MovedMemory::~MovedMemory() = default;

MachineRate MovedMemory::rate(Move move, int vector_bytes, const Precision &precision) {
    struct Flow {
        Steady time;
        double bytes;
    };
    // `threads` threads, each going over `bytes` bytes of its own, and how many bytes they move in one repetition.
    const auto flow = [&](int threads, size_t bytes) -> Flow {
        bytes = std::max<size_t>(bytes / 1024, 1) * 1024;
        const size_t half = bytes / 2;
        auto once = [&](int thread, long passes) {
            void *memory = buffers_->of(thread);
            if (move == Move::read) bandwidth_read(memory, bytes, vector_bytes, passes);
            else bandwidth_copy(static_cast<char *>(memory) + half, memory, half, vector_bytes, passes);
        };
        buffers_->of(0);
        const long passes = repetitions([&](long n) { once(0, n); }, rate_round_s);
        return {steady(
                    threads, [&](int worker) { once(worker, passes); }, precision),
                static_cast<double>(bytes) * static_cast<double>(passes) * threads};
    };
    const Flow one = flow(1, sets_.one), all = flow(threads_, sets_.all);
    return rate_of(one.time, one.bytes, all.time, all.bytes);
}

}  // namespace tessera

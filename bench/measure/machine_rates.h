// What this machine does at most, by the loops of peak.h and bandwidth.h: operations and bytes in a second. Programs without the compiler
// link it too.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "bench/measure/machine.h"
#include "bench/measure/peak.h"
#include "bench/measure/stable_timing.h"

namespace tessera {

// The rate of one thread while the others are idle, and of all threads together: the highest that were seen.
struct MachineRate {
    double one_thread = 0, all_threads = 0;
    double spread = 0;  // the larger of both (Steady)
};

constexpr double rate_round_s = 0.003;  // a round is long beside the threads' meeting, short beside what interrupts them

// Operations in a second; nothing where the processor has no such instruction of that width.
std::optional<MachineRate> peak_rate(Peak peak, int vector_bytes, int threads, const Precision &precision);

// Bytes of data caches; a level that the machine does not have is as large as the one below.
struct CacheBytes {
    int64_t l1 = 0, l2 = 0, l3 = 0;
};
// Nothing where the machine shows no first level.
std::optional<CacheBytes> cache_bytes(const Machine &machine);

// Bytes that each thread goes over, when it is alone and when all run.
struct WorkingSets {
    size_t one = 0, all = 0;
};
// By the names of levels and "memory" (memory_names of schedules/target/target.h); a level that the machine does not have is missing. A
// thread goes over half of the first level; over half of the second; over its share of half of the third, or one and a half second ones
// where that is more; and over four times the third, of which threads together take one share each.
std::map<std::string, WorkingSets> working_sets(const CacheBytes &caches, const Machine &machine);

enum class Move { read, copy };

// Memory for one working set, kept for several measurements.
class MovedMemory {
public:
    MovedMemory(const WorkingSets &sets, int threads);
    ~MovedMemory();
    // Bytes in a second; copying counts bytes read and bytes written.
    MachineRate rate(Move move, int vector_bytes, const Precision &precision);

private:
    class Buffers;
    WorkingSets sets_;
    int threads_;
    std::unique_ptr<Buffers> buffers_;
};

}  // namespace tessera

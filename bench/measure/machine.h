// The machine that this process runs on: its processor, cores and caches (by hwloc), as far as this process may use them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct Cache {
    int level = 1;      // of data or unified caches
    int64_t bytes = 0;  // of one
    int threads = 1;    // hardware threads that share one
};

struct Machine {
    std::string processor;     // "AMD EPYC", or "unknown"
    std::string architecture;  // as uname has it: "x86_64"
    int cores = 1, threads = 1, numa_nodes = 1;
    int64_t memory_bytes = 0;
    std::vector<Cache> caches;  // nearest first; none that hwloc cannot see

    const Cache *cache(int level) const;
};

Machine this_machine();

// "32 KiB", "1.5 MiB"
std::string bytes_text(int64_t bytes);

}  // namespace tessera

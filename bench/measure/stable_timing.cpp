#include "bench/measure/stable_timing.h"

#include <sched.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "bench/measure/ranks.h"
#include "bench/measure/seconds_now.h"

namespace {

std::vector<int> allowed_processors() {
    std::vector<int> all;
#if defined(__linux__)
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &allowed)) all.push_back(cpu);
#endif
    return all;
}

void pin([[maybe_unused]] int processor) {
#if defined(__linux__)
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(0, sizeof one, &one);  // where it is not allowed, threads stay where the system puts them
#endif
}

Steady summary(const std::vector<double> &times) {
    const tessera::ConfidenceInterval median = tessera::interval_of_ranks(times);
    return {*std::min_element(times.begin(), times.end()), median.centre, median.spread(), static_cast<int>(times.size())};
}

}  // namespace

Steady steady(int threads, const std::function<void(int)> &work, const Precision &precision) {
    constexpr int warming = 3, fewest = 8;
    const std::vector<int> processors = allowed_processors();
    // The last thread to come to a gate takes the time, before any goes on: all of the work lies between two of them.
    double passed = 0;
    auto take_time = [&]() noexcept { passed = tessera::seconds_now(); };
    std::barrier<decltype(take_time)> gate(threads, take_time);
    bool done = false;  // written by the first worker between two gates
    Steady result;
    auto worker = [&](int id) {
        if (!processors.empty()) pin(processors[static_cast<size_t>(id) % processors.size()]);
        std::vector<double> times;
        const double begin = tessera::seconds_now();
        for (int round = -warming; !done; round++) {
            gate.arrive_and_wait();
            const double start = passed;
            work(id);
            gate.arrive_and_wait();
            const double end = passed;
            if (id == 0 && round >= 0) {
                times.push_back(end - start);
                if (times.size() >= fewest && end - begin > precision.min_s) {
                    result = summary(times);
                    done = result.spread <= precision.spread || end - begin > precision.max_s;
                }
            }
            gate.arrive_and_wait();
        }
    };
    std::vector<std::thread> team;
    for (int id = 0; id < threads; id++) team.emplace_back(worker, id);
    for (std::thread &t : team) t.join();
    return result;
}

long repetitions(const std::function<void(long)> &work, double seconds) {
    for (long count = 1;; count *= 2) {
        const double start = tessera::seconds_now();
        work(count);
        if (tessera::seconds_now() - start >= seconds || count > (1L << 40)) return count;
    }
}

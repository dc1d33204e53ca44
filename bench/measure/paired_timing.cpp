#include "bench/measure/paired_timing.h"

#include "bench/measure/ranks.h"
#include "bench/measure/seconds_now.h"

Contest contest(const std::vector<std::function<void()>> &contestants, int rounds, double budget_s) {
    size_t n = contestants.size();
    std::vector<std::vector<double>> times(n);
    double begin = tessera::seconds_now();
    for (int round = -2; round < rounds || tessera::seconds_now() - begin < budget_s; round++) {
        if (round > 20000) break;
        for (size_t turn = 0; turn < n; turn++) {
            size_t c = (turn + static_cast<size_t>(round + 2)) % n;  // nobody always goes first
            double start = tessera::seconds_now();
            contestants[c]();
            if (round >= 0) times[c].push_back(tessera::seconds_now() - start);
        }
    }
    Contest result;
    for (size_t c = 0; c < n; c++) {
        std::vector<double> ratios;
        for (size_t i = 0; i < times[0].size(); i++) ratios.push_back(times[c][i] / times[0][i]);
        const tessera::ConfidenceInterval ratio = tessera::interval_of_ranks(ratios);
        result.seconds.push_back(tessera::median(times[c]));
        result.ratio.push_back(ratio.centre), result.lower.push_back(ratio.lower), result.upper.push_back(ratio.upper);
    }
    return result;
}

#include "bench/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>

static double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

static double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    double at = q * static_cast<double>(values.size() - 1);
    size_t i = static_cast<size_t>(at);
    double part = at - static_cast<double>(i);
    return i + 1 < values.size() ? values[i] * (1 - part) + values[i + 1] * part : values[i];
}

Contest contest(const std::vector<std::function<void()>> &contestants, int rounds, double budget_s) {
    size_t n = contestants.size();
    std::vector<std::vector<double>> times(n);
    double begin = now();
    for (int round = -2; round < rounds || now() - begin < budget_s; round++) {
        if (round > 20000) break;
        for (size_t turn = 0; turn < n; turn++) {
            size_t c = (turn + static_cast<size_t>(round + 2)) % n;  // nobody always goes first
            double start = now();
            contestants[c]();
            if (round >= 0) times[c].push_back(now() - start);
        }
    }
    Contest result;
    for (size_t c = 0; c < n; c++) {
        std::vector<double> ratios;
        for (size_t i = 0; i < times[0].size(); i++) ratios.push_back(times[c][i] / times[0][i]);
        // The interval of a median by ranks (normal approximation of the binomial).
        double half = 0.98 / std::sqrt(static_cast<double>(ratios.size()));
        result.seconds.push_back(quantile(times[c], 0.5));
        result.ratio.push_back(quantile(ratios, 0.5));
        result.lower.push_back(quantile(ratios, std::max(0.0, 0.5 - half)));
        result.upper.push_back(quantile(ratios, std::min(1.0, 0.5 + half)));
    }
    return result;
}

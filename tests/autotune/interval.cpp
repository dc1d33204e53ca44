#include "autotune/interval.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "bench/inputs.h"

using namespace tessera;

// SciPy: stats.t.ppf(0.975, 4) and ppf(1 - 0.05 / 8, 4).
TEST_CASE("the interval of five processes is Student's") {
    const std::vector<double> ratios = {1.0, std::exp(0.01), std::exp(-0.01), std::exp(0.02), std::exp(-0.02)};
    const double error = std::sqrt(0.001 / 4 / 5);
    const ConfidenceInterval one = interval_of_processes(ratios, 1), four = interval_of_processes(ratios, 4);
    CHECK(one.centre == Approx(1));
    CHECK(std::log(one.upper) == Approx(2.7764451051977987 * error));
    CHECK(std::log(one.lower) == Approx(-2.7764451051977987 * error));
    CHECK(std::log(four.upper) == Approx(4.314656048909503 * error));
    const ConfidenceInterval sure = interval_of_processes({2, 2, 2, 2, 2}, 4);
    CHECK(sure.lower == Approx(2));
    CHECK(sure.upper == Approx(2));
}

// Of processes that differ by a few hundredths, with no difference in truth: 95 of a hundred families of four intervals hold 1 in all.
TEST_CASE("the intervals of several comparisons hold together") {
    RandomNumbers random(3);
    int hold = 0, families = 2000;
    for (int f = 0; f < families; f++) {
        bool all = true;
        for (int c = 0; c < 4; c++) {
            std::vector<double> ratios;
            for (size_t i = 0; i < processes; i++) {
                double sum = 0;
                for (int k = 0; k < 12; k++) sum += random.signed_unit();
                ratios.push_back(std::exp(0.02 * sum));
            }
            const ConfidenceInterval i = interval_of_processes(ratios, 4);
            all = all && i.lower <= 1 && 1 <= i.upper;
        }
        hold += all;
    }
    CHECK(hold > 0.94 * families);
    CHECK(hold < 0.975 * families);
}

TEST_CASE("the median and its ranks") {
    CHECK(median({}) == 0);
    CHECK(median({3, 1, 2}) == 2);
    std::vector<double> values;
    for (int i = 0; i < 100; i++) values.push_back(i);
    const ConfidenceInterval i = interval_of_ranks(values);
    CHECK(i.centre == 50);
    CHECK(i.lower == 40);
    CHECK(i.upper == 60);
    CHECK(i.spread() == Approx(0.2));
    CHECK(interval_of_ranks({7}).lower == 7);
}

#include "autotune/measure/interval.h"

#include <catch2/catch.hpp>

#include <cmath>

#include "bench/measure/inputs.h"

namespace tessera::test_interval {

// Quantiles by integrating the density: of 1 - 0.05 / 4 and 1 - 0.05 / 16, since there are two looks, with 4 and 9 degrees of freedom.
TEST_CASE("the interval of processes is Student's, at each of its looks") {
    const std::vector<double> ratios = {1.0, std::exp(0.01), std::exp(-0.01), std::exp(0.02), std::exp(-0.02)};
    const double error = std::sqrt(0.001 / 4 / 5);
    const ConfidenceInterval one = interval_of_processes(ratios, 1), four = interval_of_processes(ratios, 4);
    CHECK(one.centre == Approx(1));
    CHECK(std::log(one.upper) == Approx(3.4954059325156095 * error));
    CHECK(std::log(one.lower) == Approx(-3.4954059325156095 * error));
    CHECK(std::log(four.upper) == Approx(5.261057575064569 * error));
    std::vector<double> twice = ratios;
    twice.insert(twice.end(), ratios.begin(), ratios.end());
    const double less = std::sqrt(0.002 / 9 / 10);
    CHECK(std::log(interval_of_processes(twice, 1).upper) == Approx(2.6850108468153167 * less));
    CHECK(std::log(interval_of_processes(twice, 4).upper) == Approx(3.546508498077401 * less));
    const ConfidenceInterval sure = interval_of_processes({2, 2, 2, 2, 2}, 4);
    CHECK(sure.lower == Approx(2));
    CHECK(sure.upper == Approx(2));
}

// What so many looks at processes say that see a gain with that deviation.
static ConfidenceInterval seen(RandomNumbers &random, double gain, double deviation, size_t comparisons, size_t max_looks) {
    std::vector<double> ratios;
    ConfidenceInterval interval;
    for (size_t look = 0; look < max_looks && (look == 0 || is_undecided(interval)); look++) {
        for (size_t i = 0; i < processes; i++) {
            double sum = 0;  // of variance 4
            for (int k = 0; k < 12; k++) sum += random.signed_unit();
            ratios.push_back(gain * std::exp(deviation / 2 * sum));
        }
        interval = interval_of_processes(ratios, comparisons);
    }
    return interval;
}

// For processes that differ by a few hundredths, with no difference in truth: 95 of a hundred families of four intervals hold 1 in all.
TEST_CASE("the intervals of several comparisons hold together, looked at twice") {
    RandomNumbers random(3);
    int hold = 0, families = 2000;
    for (int f = 0; f < families; f++) {
        bool all = true;
        for (int c = 0; c < 4; c++) {
            const ConfidenceInterval i = seen(random, 1, 0.04, 4, looks);
            all = all && i.lower <= 1 && 1 <= i.upper;
        }
        hold += all;
    }
    CHECK(hold > 0.95 * families);
    CHECK(hold < 0.99 * families);
}

TEST_CASE("a second look finds a gain of two hundredths that the first leaves open") {
    RandomNumbers random(5);
    const auto found = [&](size_t max_looks) {
        int surely = 0;
        for (int i = 0; i < 1000; i++) surely += seen(random, 1.02, 0.01, 5, max_looks).lower > 1;
        return surely;
    };
    CHECK(found(1) < 600);
    CHECK(found(2) > 950);
}

TEST_CASE("the median and its ranks") {
    CHECK(median({}) == 0);
    CHECK(median({3, 1, 2}) == 2);
    std::vector<double> values;
    for (int i = 0; i < 100; i++) values.push_back(i);
    const ConfidenceInterval i = interval_of_ranks(values);
    CHECK(i.centre == 49.5);
    CHECK(i.lower == 39);
    CHECK(i.upper == 60);
    CHECK(i.spread() == Approx(10.5 / 49.5));
    CHECK(interval_of_ranks({7}).lower == 7);
    CHECK(median({1, 2, 4, 8}) == 3);
}

// Holds for ratios, whichever of the two is on top.
TEST_CASE("the interval by ranks favours neither side") {
    RandomNumbers random(7);
    for (size_t n = 1; n <= 40; n++) {
        std::vector<double> values, negated;
        for (size_t i = 0; i < n; i++) values.push_back(random.signed_unit()), negated.push_back(-values.back());
        const ConfidenceInterval a = interval_of_ranks(values), b = interval_of_ranks(negated);
        CHECK(a.centre == -b.centre);
        CHECK(a.lower == -b.upper);
        CHECK(a.upper == -b.lower);
        CHECK(a.lower <= a.centre);
        CHECK(a.centre <= a.upper);
    }
}

}  // namespace tessera::test_interval

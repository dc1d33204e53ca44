#include "bench/measure/bound.h"

#include <catch2/catch.hpp>

namespace tessera::test_bound {

static MachineLimits sample_limits() {
    MachineLimits limits;
    limits.peaks[PEAK_F32] = 100, limits.peaks[PEAK_BF16] = 300;
    limits.caches = {1000, 10000, 100000}, limits.read = {1000, 100, 10, 1}, limits.read_by_all = 2;
    return limits;
}

TEST_CASE("operations are bounded by the fastest way of computing them") {
    const MachineLimits limits = sample_limits();
    const auto seconds = [&](const std::vector<Way> &ways) { return bound_seconds({{600, ways}}, 0, limits, 1); };
    CHECK(seconds({Way{}}) == Approx(6));
    CHECK(seconds({{PEAK_BF16, 7}}) == Approx(2));           // a known peak counts, whatever is assumed
    CHECK(seconds({{PEAK_F64, 0.5}}) == Approx(12));         // one that is not known is so many times that of f32
    CHECK(seconds({{{}, 4}, {PEAK_BF16, 1}}) == Approx(1.5));
    CHECK(bound_seconds({{600}, {600, {{PEAK_BF16, 1}}}}, 0, limits, 2) == Approx(4));
    CHECK(bound_seconds({{0}}, 0, limits, 1) == 1e-9);
}

TEST_CASE("bytes are bounded by the rate of the level that they come from") {
    const MachineLimits limits = sample_limits();
    CHECK(bound_seconds({}, 1000, limits, 1) == Approx(1));
    CHECK(bound_seconds({}, 2000, limits, 1) == Approx(10));
    CHECK(bound_seconds({}, 2000, limits, 2) == Approx(1));  // each core has a first level of its own
    CHECK(bound_seconds({}, 100000 + 90000, limits, 1) == Approx(90000));
    CHECK(bound_seconds({}, 100000 + 90000, limits, 2) == Approx(45000));
    CHECK(bound_seconds({{1e6}}, 1000, limits, 1) == Approx(10000));  // the slower of the two
}

}  // namespace tessera::test_bound

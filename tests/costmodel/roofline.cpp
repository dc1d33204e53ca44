#include "costmodel/roofline.h"

#include <catch2/catch.hpp>

using namespace tessera;

TEST_CASE("the roofline is the slowest of core and levels, and a little more") {
    Profile p;
    p.core_time = 6e9;
    Rates rates;
    CHECK(predicted_seconds(p, rates, 1) == Approx(1));
    p.traffic = {1e11, 0, 0};
    CHECK(predicted_seconds(p, rates, 1) > 1);
    CHECK(predicted_seconds(p, rates, 1) < 2);
    p.parallel = 8;
    CHECK(predicted_seconds(p, rates, 4) < 0.4);
    p.parallel = 1;
    CHECK(predicted_seconds(p, rates, 4) > 1);
}

TEST_CASE("measured rates take the place of those of the kind") {
    Target t = target_named("avx2");
    CHECK(rates_of(t).fma == Rates{}.fma);
    t.measured = Measured{};
    t.measured->peaks["f32"] = {160e9, 320e9, 0};
    t.measured->read["memory"] = {20e9, 20e9, 0};
    CHECK(rates_of(t).fma == Approx(10e9));
    CHECK(rates_of(t).read[2] == Approx(20e9));
    Work work;
    work.operations = 160e9, work.bytes = 1e6;
    CHECK(bound_seconds(work, t, 1) == Approx(1));
    CHECK(bound_seconds(work, t, 2) == Approx(0.5));
    work.operations = std::nullopt, work.bytes = 40e9;
    CHECK(bound_seconds(work, t, 2) == Approx(2));
}

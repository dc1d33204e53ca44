#include "costmodel/features/roofline.h"

#include <catch2/catch.hpp>

namespace tessera::test_roofline {

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

TEST_CASE("threads without an iteration of their own neither help nor hurt") {
    Profile p;
    p.core_time = 6e9, p.parallel = 8;
    const Rates rates;
    const auto seconds = [&](int threads) { return predicted_seconds(p, rates, threads); };
    CHECK(seconds(4) == Approx(0.25));
    CHECK(seconds(7) == Approx(0.25));  // of which one has two
    CHECK(seconds(8) == Approx(0.125));
    CHECK(seconds(16) == Approx(0.125));
    p.alone = 3e9;  // a stage before the parallel loop
    CHECK(seconds(1) == Approx(1));
    CHECK(seconds(8) == Approx(0.5 + 0.5 / 8));
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
    // Memory brings what the third level cannot hold, to all threads together at the rate that was measured of all.
    work.operations = std::nullopt, work.bytes = 40e9 + static_cast<double>(t.l3_bytes);
    CHECK(bound_seconds(work, t, 2) == Approx(2));
    t.measured->read["memory"].all_threads = 40e9;
    CHECK(bound_seconds(work, t, 1) == Approx(2));
    CHECK(bound_seconds(work, t, 2) == Approx(1));
}

TEST_CASE("the bound goes by the peaks of what the operations are on") {
    Target t = target_named("znver4+avx512_vnni");
    t.measured = Measured{};
    t.measured->peaks["f32"] = {1e11, 1e11, 0};
    const auto bound = [&](const std::string &kind) {
        Work work;
        work.operations = 2e11, (kind == "f64" ? work.f64 : work.by_family[kind]) = 1e11;
        return bound_seconds(work, t, 1);
    };
    CHECK(bound("f64") == Approx(1 + 2));
    CHECK(bound("dot2") == Approx(1 + 0.5));
    CHECK(bound("dot4") == Approx(1 + 0.25));
    t.measured->peaks["f64"] = {4e10, 4e10, 0}, t.measured->peaks["bf16"] = {1.25e11, 1.25e11, 0},
    t.measured->peaks["u8s8"] = {5e11, 5e11, 0};
    CHECK(bound("f64") == Approx(1 + 2.5));
    CHECK(bound("dot2") == Approx(1 + 0.8));
    CHECK(bound("dot4") == Approx(1 + 0.2));
    // An instruction that is slower than f32 bounds nothing: bf16 can be widened.
    t.measured->peaks["bf16"] = {5e10, 5e10, 0};
    CHECK(bound("dot2") == Approx(2));
    // A tile of AMX takes 16 cycles, in each of which 32 products of f32 may start.
    t.features = target_named("amx").features;
    CHECK(bound("dot2") == Approx(1 + 1.0 / 16));
    CHECK(bound("dot4") == Approx(1 + 1.0 / 32));
    // Without the instructions bf16 goes as f32 does, and bytes as products of words.
    t.features = target_named("avx2").features;
    CHECK(bound("dot2") == Approx(2));
    CHECK(bound("dot4") == Approx(1 + 0.5));
}

TEST_CASE("the work that a program has left is that of its instructions and of what it writes") {
    const Target t = target_named("avx512");
    Profile p;
    p.fma = 10, p.grouped = 5, p.arithmetic = 3, p.slow = 1, p.written_bytes = 100;
    const Work left = work_left(p, t);
    CHECK(left.operations == (30 + 4) * 16);
    CHECK(left.bytes == 100);
}

TEST_CASE("the bound goes by the rate of the level that what does not fit comes from") {
    Target t = target_named("avx2");
    t.measured = Measured{};
    t.measured->read["l1"] = {4e11, 8e11, 0}, t.measured->read["l2"] = {1e11, 2e11, 0};
    Work work;
    work.bytes = static_cast<double>(t.l1_bytes);
    CHECK(bound_seconds(work, t, 1) == Approx(work.bytes / 4e11));
    CHECK(bound_seconds(work, t, 2) == Approx(work.bytes / 8e11));
    work.bytes *= 9;
    CHECK(bound_seconds(work, t, 1) == Approx(work.bytes * 8 / 9 / 1e11));
}

}  // namespace tessera::test_roofline

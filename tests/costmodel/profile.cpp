#include "costmodel/features/profile.h"

#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "costmodel/features/roofline.h"

namespace tessera::test_profile {

static Profile profile(const Algorithm &a, const Knobs &y, const std::string &target = "avx512", int threads = 1) {
    return profile_of(lower(a, {{"y", y}}, target_named(target)), {}, target_named(target), threads);
}

static const Algorithm product = bind_extents(library::matmul({}), {{"M", 64}, {"N", 96}, {"K", 128}});

TEST_CASE("a register tile's instructions are counted") {
    Knobs k;
    k.micro = {{"M", 8}, {"N", 48}}, k.vector = {{"N", 16}};
    const Profile p = profile(product, k);
    CHECK(p.fma == 64 * 96 * 128 / 16);
    CHECK(p.loads == 8 * 2 * 128 * 3);       // w: three vectors a step, for each of 8 x 2 tiles
    CHECK(p.broadcasts == 8 * 2 * 128 * 8);  // x: eight
    CHECK(p.accumulators == 24);
    CHECK(p.loads_per_fma == Approx(11.0 / 24));
    CHECK(p.inner_trips == 128);
    CHECK(p.stores == 64 * 96 / 16);
    CHECK(p.chained == 0);
    CHECK(p.scalar == p.broadcasts);
    CHECK(p.stack_bytes >= 8 * 48 * 4);
    CHECK(p.argument_bytes == 4 * (64 * 128 + 128 * 96 + 64 * 96));
}

TEST_CASE("one accumulator waits for itself, and plain loops work on one element at a time") {
    Knobs one;
    one.vector = {{"N", 16}};
    const Profile p = profile(product, one);
    CHECK(p.accumulators == 1);
    CHECK(p.chained > p.fma);
    const Profile plain = profile(product, {});
    CHECK(plain.fma == 64 * 96 * 128);
    CHECK(plain.scalar > plain.fma);
    CHECK(plain.core_time > 8 * p.core_time);
}

TEST_CASE("lanes along a strided axis are gathers, packing copies, threads share") {
    Knobs k;
    k.vector = {{"M", 16}};
    CHECK(profile(product, k).gathers > 0);
    CHECK(profile(product, k).scatters > 0);
    Knobs packed;
    packed.micro = {{"M", 8}, {"N", 48}}, packed.vector = {{"N", 16}}, packed.loops = {"micro.N", "micro.M"}, packed.parallel = {"micro.N"};
    packed.pack["w"] = {"micro.N", {{"N", 48, false}, {"K", 0, false}, {"N", 48, true}}};
    const Profile p = profile(product, packed, "avx512", 2);
    CHECK(p.copied == 128 * 96);
    CHECK(p.workspace_bytes + p.stack_bytes >= 128 * 48 * 4);
    CHECK(p.parallel == 2);
    CHECK(p.regions == 1);
    CHECK(p.imbalance == 1);
    CHECK(profile(product, packed, "avx512", 4).imbalance == 2);
}

TEST_CASE("a product with fewer blocks than threads is drafted no slower for more of them") {
    Knobs k;
    k.micro = {{"M", 8}, {"N", 48}}, k.vector = {{"N", 16}}, k.loops = {"micro.M", "micro.N"}, k.parallel = {"micro.M"};
    double last = 1;
    for (const int threads : {1, 2, 4, 7, 8, 12, 16}) {
        INFO(threads);
        const Profile p = profile(product, k, "avx512", threads);
        REQUIRE(p.parallel == 8);
        CHECK(p.alone == 0);
        const double seconds = predicted_seconds(p, {.parallel_loop_s = 0}, threads);
        CHECK(seconds <= last);
        last = seconds;
    }
    CHECK(profile(product, {}).alone == profile(product, {}).core_time);
}

TEST_CASE("what a cache cannot hold is brought again") {
    const Algorithm large = bind_extents(library::matmul({}), {{"M", 512}, {"N", 4096}, {"K", 2048}});
    Knobs rows, columns;
    rows.micro = columns.micro = {{"M", 8}, {"N", 48}}, rows.vector = columns.vector = {{"N", 16}};
    rows.loops = {"micro.M", "micro.N"}, columns.loops = {"micro.N", "micro.M"};
    const Profile r = profile(large, rows), c = profile(large, columns);
    // Rows outermost read all of w, 32 MiB, for each of 64 tiles of rows.
    CHECK(r.traffic[2] > 0.9 * 64 * 2048 * 4096 * 4);
    CHECK(c.traffic[2] < 0.3 * r.traffic[2]);
    CHECK(r.traffic[0] >= r.traffic[1]);
    CHECK(r.traffic[1] >= r.traffic[2]);
}

TEST_CASE("tails are counted as often as they occur") {
    Knobs k;
    k.micro = {{"M", 8}, {"N", 48}}, k.vector = {{"N", 16}};
    const Profile p = profile(bind_extents(library::matmul({}), {{"M", 65}, {"N", 96}, {"K", 128}}), k);
    CHECK(p.fma > 64 * 96 * 128 / 16);
    CHECK(p.fma <= 72 * 96 * 128 / 16);
}

TEST_CASE("a last block that is smaller is counted as small as it is") {
    Knobs k;
    k.micro = {{"M", 4}, {"N", 48}}, k.vector = {{"N", 16}}, k.block = {{"M", 48}};
    CHECK(profile(product, k).fma == 64 * 96 * 128 / 16);
}

TEST_CASE("rows that data bounds count as typical ones, as far as there are elements") {
    const Algorithm rows = bind_extents(library::segmented_sum({}), {{"B", 10}, {"N", 16}, {"T", 1000}});
    CHECK(profile(rows, {}).arithmetic == 10 * 64 * 16);
    const Algorithm few = bind_extents(library::segmented_sum({}), {{"B", 10}, {"N", 16}, {"T", 100}});
    CHECK(profile(few, {}).arithmetic == 100 * 16);
}

TEST_CASE("what no iteration reaches counts nothing") {
    Knobs k;
    k.micro = {{"M", 8}, {"N", 48}}, k.vector = {{"N", 16}};
    const Algorithm whole = library::matmul({});
    const Target target = target_named("avx512");
    const TileProgram program = lower(whole, {{"y", k}}, target);
    // No tail is taken.
    const Profile p = profile_of(program, {{"M", 64}, {"N", 96}, {"K", 128}}, target, 1);
    CHECK(p.fma == 64 * 96 * 128 / 16);
    CHECK(p.masked == 0);
    CHECK(profile_of(program, {{"M", 64}, {"N", 0}, {"K", 128}}, target, 1).fma == 0);
}

TEST_CASE("a fold that is written out waits as long, and has no more accumulators") {
    Knobs rolled;
    rolled.micro = {{"N", 32}}, rolled.vector = {{"N", 16}};
    Knobs unrolled = rolled;
    unrolled.unroll = {{"K", 4}};
    const Profile r = profile(product, rolled), u = profile(product, unrolled);
    CHECK(r.accumulators == 2);
    CHECK(u.accumulators == 2);
    CHECK(r.in_turn == 1);
    CHECK(u.in_turn == 4);
    CHECK(u.chained == Approx(r.chained).epsilon(0.05));
    CHECK(u.inner_loads == 4 * r.inner_loads);
}

TEST_CASE("what one instruction of a family takes is one load where it lies together") {
    const Algorithm bytes = bind_extents(library::matmul_u8s8({}), {{"M", 64}, {"N", 64}, {"K", 128}});
    Knobs k;
    k.micro = {{"M", 4}, {"N", 64}}, k.vector = {{"N", 16}}, k.instruction = "dot4", k.loops = {"micro.N", "micro.M"};
    Knobs packed = k;
    packed.pack["w"] = {"micro.N", {{"N", 64, false}, {"K", 4, false}, {"N", 64, true}, {"K", 4, true}}};
    const Profile apart = profile(bytes, k, "znver4"), together = profile(bytes, packed, "znver4");
    const double groups = 64 * 64 * 128 / 4 / 16;
    CHECK(apart.grouped == groups);
    CHECK(together.grouped == groups);
    CHECK(together.fma == 0);
    CHECK(apart.gathers >= groups / 4);  // for four rows
    CHECK(together.gathers < groups / 16);
    CHECK(together.broadcasts >= groups / 4);
    CHECK(apart.core_time > 4 * together.core_time);
}

TEST_CASE("lanes that run past a tile of a pack are anywhere") {
    Knobs k;
    k.micro = {{"M", 8}, {"N", 32}}, k.vector = {{"N", 16}}, k.loops = {"micro.N", "micro.M"};
    Knobs other = k;
    k.pack["w"] = {"root", {{"N", 32, false}, {"K", 0, false}, {"N", 32, true}}};
    other.pack["w"] = {"root", {{"N", 24, false}, {"K", 0, false}, {"N", 24, true}}};
    CHECK(profile(product, k).gathers == 0);
    CHECK(profile(product, other).gathers > 0);
    CHECK(profile(product, other).core_time > 1.5 * profile(product, k).core_time);
}

TEST_CASE("data that a level holds from the last call is not brought") {
    Knobs k;
    k.micro = {{"M", 8}, {"N", 48}}, k.vector = {{"N", 16}};
    const Profile p = profile(product, k);  // 102 KiB
    CHECK(p.traffic[0] > 0);
    CHECK(p.traffic[1] == 0);
    CHECK(p.traffic[2] == 0);
}

TEST_CASE("calls inside of calls count, and the arguments are the program's own") {
    Builder f("net", Numerics{});
    const Dim M = f.dim("M"), D = f.dim("D"), F = f.dim("F");
    const Tile x = f.input("x", {M, D});
    const Tile y = f.call("ffn", library::feed_forward({}),
                          {x, f.input("w_up", {D, F}), f.input("b_up", {F}), f.input("w_down", {F, D}), f.input("b_down", {D}),
                           f.input("gamma", {D}), f.input("beta", {D})})[0];
    const Algorithm net = bind_extents(f.output("y", y).build(), {{"M", 64}, {"D", 64}, {"F", 256}});
    const Target target = target_named("avx512");
    const Profile inlined = profile_of(lower(net, {}, target), {}, target, 1);
    KnobsByStage once;
    for (const char *scope : {"ffn", "ffn.up", "ffn.down", "ffn.norm"}) once[scope].call = "once";
    const TileProgram called = lower(net, once, target);
    REQUIRE(called.programs.size() > 1);
    const Profile nested = profile_of(called, {}, target, 1);
    CHECK(inlined.fma >= 2 * 64 * 64 * 256);
    CHECK(nested.fma == Approx(inlined.fma).epsilon(0.3));
    CHECK(nested.argument_bytes <= inlined.argument_bytes);
    CHECK(nested.argument_bytes >= 4 * 64 * 64);
}

}  // namespace tessera::test_profile

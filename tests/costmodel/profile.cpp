#include "costmodel/profile.h"

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "compiler/lower.h"

using namespace tessera;

static Profile profile(const Algorithm &a, const Knobs &y, const std::string &target = "avx512", int threads = 1) {
    return profile_of(lower(a, {{"y", y}}, target_named(target)), {}, target_named(target), threads);
}

static const Algorithm product = bind_extents(library::matmul({}), {{"M", 64}, {"N", 96}, {"K", 128}});

TEST_CASE("a register tile's instructions are counted") {
    Knobs k;
    k.micro = {{"M", 8}, {"N", 48}}, k.vector = {{"N", 16}};
    const Profile p = profile(product, k);
    CHECK(p.fma == 64 * 96 * 128 / 16);
    CHECK(p.loads == 8 * 2 * 128 * 3);           // w: three vectors a step, for each of 8 x 2 tiles
    CHECK(p.broadcasts == 8 * 2 * 128 * 8);      // x: eight
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

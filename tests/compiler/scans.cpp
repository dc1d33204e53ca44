// Which parts of a scan are computed, and where a scan may be placed.
#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "compiler/compile/specialize.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/cases.h"
#include "tests/compiler/laws.h"
#include "tests/support/words.h"

namespace tessera::test_scans {

using namespace tessera::test;

static Place at(const std::string &stage, const std::string &loop) { return {Place::Kind::at, stage, loop}; }

static std::string tiles_of(const Algorithm &a, const KnobsByStage &stages) { return to_text(lower(a, stages, target_named("avx2"))); }

// h scans x along M; y reads it at `row`.
struct Reader {
    Builder f{"reader", {}};
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N});
    Algorithm at_row(ScanDirection direction, const Expr &row) {
        Tile h = f.scan(sum_monoid(DType::f32), x, M, true, direction).named("h");
        Tile read = f.tile(load("h", DType::f32, {row, variable("N")}), {M, N});
        return f.output("y", read * x).build();
    }
    Algorithm plain(ScanDirection direction = ScanDirection::forward) { return at_row(direction, variable("M")); }
};

static KnobsByStage placed(const std::string &loop, const std::vector<std::string> &loops, const std::vector<std::string> &parallel = {}) {
    KnobsByStage stages;
    stages["y"].loops = loops, stages["y"].parallel = parallel;
    stages["h"].place = at("y", loop);
    return stages;
}

static void refused(const Algorithm &a, const KnobsByStage &stages, const std::string &got) {
    check_words(
        [&] { lower(a, stages, target_named("avx2")); },
        {"error[schedule.place]: h: it is placed inside y.",
         "and each iteration there reads another part of 'M', along which it scans. "
         "Expected a serial loop that goes through all of 'M' as the scan does and reads it at the loop's own points, with which the "
         "scan goes on; got " +
             got +
             ", where each iteration would scan from the start again. Place it at such a loop, at a loop "
             "outside of all that go along 'M', or at root."});
}

TEST_CASE("a piece of a scan whose length depends on which piece it is has words where its place is wrong") {
    Builder f("pieces");
    const Dim N = f.dim("N"), K = f.dim("K");
    const Tile x = (relu(f.input("x", {N, K})) + 0.25).named("x1");
    const Algorithm a = f.output("y", f.scan(sum_monoid(DType::f32), x, N, true, ScanDirection::backward).named("s")).build();
    KnobsByStage k;
    k["s"].vector = {{"K", 4}}, k["s"].place = at("y", "block.K"), k["s"].split["N"] = {Split::How::chunks, 8};
    k["y"].micro = {{"K", 3}};
    const std::vector<Condition> when = {{"N", "", 0, ">=", 3}, {"N", "", 0, "<=", 3}};
    check_words([&] { lower_variant(a, when, k, target_named("avx2")); },
                {"error[schedule.place]: y: it loads 's', which is computed inside another stage's loops and is not there any more"});
    k["y"].micro.clear(), k["y"].block = {{"K", 3}};
    check_programs({{"pieces", a, k, {{{"N", 3}, {"K", 2}}, {{"N", 21}, {"K", 7}}}}}, target_named("avx2"));
}

TEST_CASE("a scan that goes on with a loop gives the bits of its algorithm") { check_programs(scan_cases(8, true), target_named("avx2")); }

TEST_CASE("a scan does not begin again in each iteration of a loop") {
    refused(Reader().plain(), placed("M", {"M", "N"}, {"M"}), "a parallel loop");
    refused(Reader().plain(ScanDirection::backward), placed("M", {"M", "N"}), "a loop in the other direction");
    KnobsByStage uneven = placed("micro.M", {"block.M", "micro.M"});
    uneven["y"].block = {{"M", 6}}, uneven["y"].micro = {{"M", 4}};
    refused(Reader().plain(), uneven, "register tiles that do not divide the tiles around them");
    uneven["y"].block = {{"M", 8}};
    lower(Reader().plain(), uneven, target_named("avx2"));
    const Expr m = variable("M");
    refused(Reader().at_row(ScanDirection::forward, extent("M") - 1 - m), placed("M", {"M", "N"}),
            "reads of other points than the loop's own");
    refused(Reader().at_row(ScanDirection::forward, m / Expr(2)), placed("M", {"M", "N"}), "another place");
    Reader last;
    Tile all = last.f.scan(sum_monoid(DType::f32), last.x, last.M).named("h");
    Tile total = last.f.tile(load(all.value()->name, DType::f32, {extent("M") - 1, variable("N")}), {last.M, last.N});
    refused(last.f.output("y", all / total).build(), placed("M", {"M", "N"}), "another place");
    refused(Reader().plain(), placed("N", {"M", "N"}), "another place");
    KnobsByStage apart = placed("M", {"block.M", "N", "M"});
    apart["y"].block = {{"M", 4}};
    refused(Reader().plain(), apart, "another place");
}

TEST_CASE("a scan that a loop reads from its middle, or each time elsewhere, cannot go on with it") {
    Reader late;
    Tile h = late.f.scan(sum_monoid(DType::f32), late.x, late.M).named("h");
    Tile near = (h * late.x).named("near");
    Algorithm a = late.f.output("y", near + late.x).build();
    KnobsByStage stages;
    stages["y"].block = {{"M", 4}}, stages["near"].place = at("y", "block"), stages["near"].loops = {"M", "N"};
    stages["h"].place = at("near", "M");
    check_words([&] { lower(a, stages, target_named("avx2")); },
                {"error[schedule.place]: h: it is placed inside near.M", "got a loop that does not begin where the scan does"});
    Reader skewed;
    Tile all = skewed.f.scan(sum_monoid(DType::f32), skewed.x, skewed.M).named("h");
    Dim D = skewed.f.dim("D", 3);
    Tile read = skewed.f.tile(load_or("h", DType::f32, {variable("M"), variable("M") + variable("D")},
                                      variable("M") + variable("D") < extent("N"), constant(DType::f32, 0)),
                              {skewed.M, D});
    refused(skewed.f.output("y", read + read).build(), placed("M", {"M", "D"}),
            "a loop that reads another part of 'N' in each iteration too");
}

TEST_CASE("what a scan carries is kept in registers where its readers' tile is fixed") {
    KnobsByStage stages = placed("M", {"micro.N", "M"});
    stages["y"].micro = stages["h"].micro = {{"N", 16}}, stages["y"].vector = stages["h"].vector = {{"N", 8}};
    const std::string tiles = tiles_of(Reader().plain(), stages);
    CHECK_THAT(tiles, Catch::Contains("h.carry[1, 16]: f32 in stack"));
    CHECK_THAT(tiles, !Catch::Contains("workspace"));
}

static Algorithm moments(const std::vector<size_t> &read) {
    Builder f("moments", {});
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N}), y = x;
    std::vector<Tile> seen = f.scan_parts(welford_monoid(DType::f32), {x}, M);  // n, mean, m2
    for (size_t part : read) y = y + seen[part];
    return f.output("y", y).build();
}

TEST_CASE("a part of a scan that nobody reads is not stored, and not computed unless a part that is read needs it") {
    const std::string mean = tiles_of(moments({1}), {});
    CHECK_THAT(mean, Catch::Contains("scan.n.acc"));
    CHECK_THAT(mean, !Catch::Contains("scan.n[") && !Catch::Contains("scan.m2"));
    const std::string count = tiles_of(moments({0}), {});
    CHECK_THAT(count, Catch::Contains("scan.n[") && !Catch::Contains("scan.mean") && !Catch::Contains("scan.m2"));
    const std::string all = tiles_of(moments({0, 2}), {});
    CHECK_THAT(all, Catch::Contains("scan.n[") && Catch::Contains("scan.m2[") && !Catch::Contains("scan.mean["));
}

}  // namespace tessera::test_scans

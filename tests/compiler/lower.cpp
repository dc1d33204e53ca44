// What schedules do to loops: small tile programs as text. TESSERA_UPDATE_GOLDEN=1 rewrites the files.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/interpret/interpret.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/cases.h"

namespace tessera::test_lower {

using namespace tessera::test;

static void check_golden(const std::string &name, const Algorithm &algorithm, const KnobsByStage &stages, const Extents &fixed = {}) {
    std::string text = to_text(lowered(name, bind_extents(algorithm, fixed), stages, target_named("avx2")));
    std::filesystem::path file = std::filesystem::path(TESSERA_SOURCE_DIR) / "tests/golden" / (name + ".txt");
    if (std::getenv("TESSERA_UPDATE_GOLDEN")) std::ofstream(file) << text;
    std::ifstream in(file);
    CHECK(text == std::string(std::istreambuf_iterator<char>(in), {}));
}

static Knobs tile() {
    Knobs k;
    k.micro = {{"M", 4}, {"N", 16}}, k.vector = {{"N", 8}};
    return k;
}

TEST_CASE("parts that read one another step at one point of a tile before the next") {
    Builder f("positions");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N});
    const std::vector<Tile> best = f.fold(argmax_monoid(DType::f32), {x, cast(DType::i64, f.index(N))}, {"N"});
    Knobs tile;
    tile.micro = {{"M", 16}}, tile.vector = {{"M", 8}};
    check_golden("positions", f.output("at", best[1]).build(), {{"argmax", tile}}, {{"M", 16}});
}

TEST_CASE("who looks on while an algorithm is lowered sees every step") {
    std::vector<LoweringStep> steps;
    const TileProgram program =
        lower(library::matmul({}), {{"y", tile()}}, target_named("avx2"), [&](const LoweringStep &step) { steps.push_back(step); });
    REQUIRE(steps.size() > 2);
    CHECK(steps.front().of == LoweringStep::Of::algorithm);
    CHECK_THAT(steps.front().text, Catch::StartsWith("algorithm matmul"));
    CHECK(steps.back().of == LoweringStep::Of::body);
    CHECK(steps.back().text == to_text(program.body));
}

TEST_CASE("no schedule: one loop for each dim, the fold innermost") { check_golden("plain", library::matmul({}), {}); }

TEST_CASE("a register tile of extents that it divides") {
    check_golden("register_tile", library::matmul({}), {{"y", tile()}}, {{"M", 8}, {"N", 32}});
}

TEST_CASE("a register tile of any extents has full and partial versions") {
    check_golden("partial_tile", library::matmul({}), {{"y", tile()}}, {{"M", 8}});
}

TEST_CASE("an operand is packed into panels") {
    Knobs k = tile();
    k.block = {{"N", 64}}, k.loops = {"block.N", "micro.N", "micro.M"};
    k.pack["w"] = {"micro.N", {{"N", 16, false}, {"K", 0, false}, {"N", 16, true}}};
    check_golden("packed_panels", library::matmul({}), {{"y", k}}, {{"M", 8}, {"N", 128}});
}

TEST_CASE("a slice of the reduction: partial results wait in the output") {
    Knobs k = tile();
    k.block = {{"M", 8}}, k.k = {{"K", 32}};
    check_golden("reduction_slice", library::matmul({}), {{"y", k}}, {{"M", 64}, {"N", 16}, {"K", 64}});
}

TEST_CASE("a producer inside its consumer's loop fills what the body needs") {
    Knobs y, squares, scale;
    y.vector = {{"N", 8}}, y.parallel = {"M"};
    squares.place = scale.place = Place{Place::Kind::at, "y", "M"};
    check_golden("placed", library::rmsnorm({}), {{"y", y}, {"squares", squares}, {"scale", scale}}, {{"N", 16}});
}

TEST_CASE("two parallel loops run as one") {
    Knobs k;
    k.block = {{"M", 4}, {"N", 16}}, k.micro = k.block, k.vector = {{"N", 8}}, k.parallel = {"block.M", "block.N"};
    check_golden("parallel_pair", library::matmul({}), {{"y", k}}, {{"M", 64}, {"N", 64}, {"K", 8}});
}

TEST_CASE("a reduction in lanes: partial results, then a fold over them") {
    Knobs y, partial;
    y.split["K"] = {Split::How::lanes, 16};
    partial.micro = {{"K.i", 16}}, partial.vector = {{"K.i", 8}}, partial.place = Place{Place::Kind::at, "y", "M"};
    check_golden("lanes", library::gemv({}), {{"y", y}, {"y.partial", partial}}, {{"K", 64}});
}

TEST_CASE("two stages split one dim in pieces of two sizes") {
    Knobs max, sum, partial;
    max.split["N"] = {Split::How::chunks, 8}, sum.split["N"] = {Split::How::lanes, 4};
    partial.vector = {{"N.i", 4}}, partial.loops = {"M", "N.i", "N.o"}, partial.parallel = {"M"};
    check_golden("two_splits", library::softmax({}), {{"max", max}, {"sum", sum}, {"sum.partial", partial}}, {{"N", 32}});
}

TEST_CASE("a scan in chunks: scans within, totals, and a scan over those") {
    Knobs y;
    y.split["N"] = {Split::How::chunks, 8};
    check_golden("scan_chunks", library::cumulative_sum({}), {{"y", y}}, {{"N", 64}});
}

TEST_CASE("a backward scan with segments: from the end, and from the identity where one begins") {
    Builder f("suffixes");
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M, N}), begins = f.input("begins", {N}, DType::boolean);
    Algorithm a = f.output("y", f.scan(sum_monoid(DType::f32), x, N, false, ScanDirection::backward, begins)).build();
    check_golden("scan_segments", a, {}, {{"N", 64}});
}

TEST_CASE("rows of segments") {
    Knobs y;
    y.vector = {{"N", 8}}, y.parallel = {"B"};
    check_golden("segments", library::segmented_sum({}), {{"y", y}}, {{"N", 16}});
}

TEST_CASE("a tail in a loop of its own") {
    Knobs y;
    y.vector = {{"N", 8}}, y.tail = {{"N", Tail::loop}};
    check_golden("tail_loop", library::column_sum({}), {{"y", y}});
}

TEST_CASE("a tail in bodies of fewer rows and vectors") {
    Knobs y = tile();
    y.tail = {{"M", Tail::narrow}, {"N", Tail::narrow}};
    check_golden("tail_narrow", library::matmul({}), {{"y", y}}, {{"M", 6}, {"K", 8}});
}

TEST_CASE("what a value chooses by run is computed side by side") {
    Builder f("halves");
    Dim M = f.dim("M"), N = f.dim("N", 32);
    Tile x = f.input("x", {M, N});
    const Expr n = variable("N");
    Tile low = x.at({{"N", n % Expr(16)}}, {"M", "N"}), high = x.at({{"N", n % Expr(16) + 16}}, {"M", "N"});
    Tile first(&f, n / Expr(16) == Expr(0), {"N"});
    Knobs y;
    y.vector = {{"N", 8}};
    check_golden("side_by_side", f.output("y", select(first, low + high, low - high)).build(), {{"y", y}});
}

TEST_CASE("a new version of a state") {
    Knobs append;
    append.vector = {{"D", 8}}, append.parallel = {"B"};
    check_golden("update", library::ring_append({}), {{"append", append}}, {{"D", 16}});
}

TEST_CASE("that a producer's tiles have points is forgotten after them") {
    Builder f("shifted");
    Dim M = f.dim("M"), N = f.dim("N");
    Tile copy = f.input("x", {M, N}).named("copy");
    const Expr before = variable("M") - Expr(2);
    Expr value = load_or("copy", DType::f32, {before, variable("N")}, Expr(0) <= before && before < extent("M"), constant(DType::f32, 0));
    const Algorithm a = f.output("y", f.tile(value, {M, N}).named("moved")).build();
    KnobsByStage stages;
    stages["copy"].block = {{"M", 6}, {"N", 1}}, stages["copy"].place = Place{Place::Kind::at, "moved", "N"};
    const TileProgram program = lowered("shifted", a, stages, target_named("avx2"));
    for (int64_t m : {1, 2, 3, 9}) {
        const Extents shape{{"M", m}, {"N", 2}};
        const Arrays inputs = make_inputs(a, shape, 1);
        CHECK(differ_in_bits(run_interpreter(program, shape, inputs, {}), run_reference(a, shape, inputs, {})) == "");
    }
}

TEST_CASE("extents are bound by name") {
    Algorithm a = bind_extents(library::matmul({}), {{"K", 64}});
    CHECK(a.dim("K").kind == DimKind::fixed);
    CHECK(a.dim("K").value == 64);
    CHECK(a.dim("M").kind == DimKind::symbolic);
}

TEST_CASE("schedules that resolve to the same program have the same hash") {
    Target target = target_named("avx2");
    Knobs k = tile(), other = tile();
    other.tail = {{"M", Tail::mask}};
    TileProgram a = lower(library::matmul({}), {{"y", k}}, target), b = lower(library::matmul({}), {{"y", other}}, target);
    b.name = "another";
    CHECK(resolved_hash(a) == resolved_hash(b));
    CHECK(resolved_hash(a) != resolved_hash(lower(library::matmul({}), {}, target)));
}

}  // namespace tessera::test_lower

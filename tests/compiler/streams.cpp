// Where results may go past the caches, and what becomes of the loops (the cases are run with all others: library_cases).
#include "compiler/lower/place/streams.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/cases.h"

namespace tessera::test_streams {

using namespace tessera::test;

// The targets of streamed loops, from outside in the order of the text.
static std::vector<std::string> streamed(const TileProgram &program) {
    std::vector<std::string> found;
    walk(program.body, [&](const TileNode &node) {
        if (auto *loop = std::get_if<Loop>(&node); loop && loop->kind == LoopKind::streamed)
            found.push_back(std::get<Copy>(*loop->body.front()).buffer);
    });
    return found;
}

TEST_CASE("what is streamed is copied once more, and has the bits that it had") {
    for (const Case &c : stream_cases(8)) {
        INFO(c.name);
        Case plain = c;
        for (auto &[stage, knobs] : plain.stages) knobs.stream.reset();
        const TileProgram with = lowered(c, target_named("avx2")), without = lowered(plain, target_named("avx2"));
        CHECK_FALSE(streamed(with).empty());
        for (const std::string &buffer : streamed(with)) CHECK(buffer == "y");
        CHECK(streamed(without).empty());
        uint32_t seed = 0;
        for (const Extents &shape : c.shapes) {
            const Parameters parameters = make_parameters(c.algorithm, ++seed);
            const Arrays inputs = make_inputs(c.algorithm, shape, seed, seed % 3 == 0);
            CHECK(differ_in_bits(run_interpreter(with, shape, inputs, parameters), run_interpreter(without, shape, inputs, parameters)) ==
                  "");
        }
    }
}

static void refused(const Algorithm &algorithm, const KnobsByStage &stages, const std::string &why) {
    CHECK_THROWS_WITH(lower(algorithm, stages, target_named("avx2")), Catch::Contains("error[schedule.stream]") && Catch::Contains(why));
}

TEST_CASE("results that cannot be streamed") {
    Knobs y;
    y.block = {{"M", 4}}, y.parallel = {"block.M", "M"}, y.loops = {"block.M", "M", "N"}, y.stream = "block.M";
    refused(library::silu({}), {{"y", y}}, "y: cannot stream what 'block.M' computes: parallel loops stand inside it.");
    Knobs fold;
    fold.k = {{"K", 4}}, fold.loops = {"k.K", "M", "N"}, fold.stream = "M";
    refused(library::matmul({}), {{"y", fold}}, "there its result is not whole");
    fold = {};
    fold.stream = "K";
    refused(library::matmul({}), {{"y", fold}}, "there its result is not whole");
    Knobs placed, reader;
    placed.place = reader.place = Place{Place::Kind::at, "y", "M"}, placed.stream = "N";
    refused(library::softmax({}), {{"exp", placed}, {"sum", reader}},
            "exp: cannot stream what 'N' computes: the stage stands in a loop of another");
    Knobs fetched;
    fetched.stream = "M", fetched.prefetch["y"] = {"y", "M", 1};
    refused(library::silu({}), {{"y", fetched}}, "'y' is also prefetched, into the caches that it is to pass by.");
    Builder f("halves");
    const Tile x = f.input("x", {f.dim("M"), f.dim("N", 32)});
    const Tile is_first = Tile(&f, variable("N") / Expr(16) == Expr(0), {"N"});
    const Algorithm halves = f.output("y", select(is_first, x, x * x)).build();
    Knobs columns;
    columns.vector = {{"N", 8}}, columns.loops = {"N", "M"}, columns.stream = "M";
    refused(halves, {{"y", columns}}, "what it computes is chosen by parts of a dim");
    Knobs root;
    root.stream = "M";
    refused(library::softmax({}), {{"exp", root}}, "exp: cannot stream what it computes: its result is no argument with dims.");
}

TEST_CASE("a GPU has no use for it") {
    KnobsByStage stages;
    stages["y"].stream = "M";
    CHECK_THROWS_WITH(lower(library::silu({}), stages, target_named("opencl")), Catch::Contains("y: 'stream' is not for opencl"));
}

}  // namespace tessera::test_streams

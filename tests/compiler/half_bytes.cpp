// Tensors of four bits an element: what kernels see of them, compiled for every target, with rows of odd length, strides and packs.
#include "algorithms/transform/half_bytes.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/harness.h"
#include "tests/support/words.h"

namespace tessera::test_half_bytes {

using namespace tessera::test;

namespace {

constexpr DType half_types[] = {DType::i4, DType::u4, DType::f4e2m1fn};

// A product with codes and a scale for each row, and its codes again.
Algorithm product(DType type) {
    Builder f("product");
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {M, K}), codes = f.input("codes", {N, K}, type), scale = f.input("scale", {N});
    const Tile y = (dot(x, cast(DType::f32, codes), {K}).named("acc") * scale).named("real");
    f.output("y", y);
    return f.output("again", cast(type, y, Rounding::nearest_even, true), type).build();  // (M, N)
}

// Elements from elsewhere: a neighbour, none behind the ends, in the other order, and of a constant.
Algorithm moved(DType type) {
    Builder f("moved");
    const Dim N = f.dim("N"), K = f.dim("K"), C = f.dim("C", 5);
    f.input("x", {N, K}, type);
    const Expr n = variable("N"), k = variable("K");
    const Tile next = f.tile(load_or("x", type, {n, k + 1}, k + 1 < extent("K"), constant(type, 2)), {N, K});
    f.output("next", next, type);
    f.output("reversed", f.tile(load("x", type, {n, extent("K") - 1 - k}), {N, K}), type);
    const Tile table = f.constant("table", {C}, {0, 1, 2, 3, 6}, type);
    const Tile chosen = table.at({{"C", bounded(cast(DType::i32, load("x", type, {n, k})), Expr(0), extent("C"))}}, {"N", "K"});
    f.output("chosen", cast(DType::f32, chosen));
    const Tile one = f.input("one", {}, type);
    f.output("other", one, type);
    // What is stored is read by another stage.
    return f.output("sum", sum(cast(DType::i32, next), K), DType::i32).build();
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (DType type : half_types) {
        const std::string name = name_of(type);
        const std::vector<Extents> shapes = {{{"M", 3}, {"N", 7}, {"K", 5}},   {{"M", 1}, {"N", 1}, {"K", 1}},
                                             {{"M", 4}, {"N", 16}, {"K", 64}}, {{"M", 2}, {"N", 0}, {"K", 3}},
                                             {{"M", 2}, {"N", 3}, {"K", 0}},   {{"M", 5}, {"N", 33}, {"K", 18}}};
        all.push_back({"product_" + name, product(type), {}, shapes});
        KnobsByStage tiled;
        tiled["acc"].vector = {{"N", 8}}, tiled["real"].vector = {{"N", 8}}, tiled["again.codes"].vector = {{"N", 8}};
        tiled["again"].vector = {{"N.bytes", 8}}, tiled["y"].vector = {{"N", 8}};
        all.push_back({"tiled_" + name, product(type), tiled, shapes});
        KnobsByStage packed = tiled;
        packed["dot_operand"].place = Place{Place::Kind::inlined, "", ""};
        packed["acc"].pack["codes"] = {.at = "root", .layout = {{"N", 8, false}, {"K.bytes", 0, false}, {"N", 8, true}}};
        all.push_back({"packed_" + name, product(type), packed, shapes});
        all.push_back(
            {"moved_" + name, moved(type), {}, {{{"N", 3}, {"K", 7}}, {{"N", 2}, {"K", 1}}, {{"N", 4}, {"K", 32}}, {{"N", 3}, {"K", 0}}}});
        KnobsByStage wide;
        for (const char *stage : {"next.codes", "reversed.codes"}) wide[stage].vector = {{"K", 8}};
        for (const char *stage : {"next", "reversed"}) wide[stage].vector = {{"K.bytes", 4}}, wide[stage].parallel = {"N"};
        all.push_back({"wide_" + name, moved(type), wide, {{{"N", 3}, {"K", 7}}, {{"N", 5}, {"K", 40}}}});
    }
    return all;
}

void check(const Target &target, const Build &build = {}) {
    INFO(target.name << " " << build.compiler);
    const std::vector<Case> all = cases();
    std::vector<TileProgram> programs;
    for (const Case &c : all) {
        INFO(c.name);
        programs.push_back(lowered(c, target));
    }
    const Loaded library(programs, target, build);
    for (size_t i = 0; i < all.size(); i++)
        for (const Extents &shape : all[i].shapes) {
            const TileProgram &program = programs[i];
            INFO(all[i].name << " " << to_text(program));
            const Arrays inputs = make_inputs(all[i].algorithm, shape, 5);
            const Arrays expected = run_reference(all[i].algorithm, shape, inputs, {});
            CHECK(differ_in_bits(run_interpreter(program, shape, inputs, {}), expected) == "");
            for (const Layout &layout : {Layout{}, Layout{.pitch = 3}, Layout{.gap = 1, .pitch = 2, .backwards = true}})
                CHECK(differ_in_bits(library.run(program, shape, inputs, {}, layout), expected) == "");
        }
}

}  // namespace

TEST_CASE("half bytes: machine code computes what elements of four bits mean") {
    for (const Target &target : targets()) check(target);
}

TEST_CASE("half bytes: an algorithm of bytes says what callers see") {
    const Algorithm a = in_bytes(product(DType::i4));
    CHECK(a.find_tensor("codes")->dtype == DType::u8);
    CHECK(a.find_tensor("codes")->dims == std::vector<std::string>{"N", "K.bytes"});
    CHECK(a.half_bytes.at("codes") == HalfBytes{DType::i4, {"N", "K"}});
    CHECK(a.half_bytes.at("again") == HalfBytes{DType::i4, {"M", "N"}});
    CHECK(a.find_stage("again.codes")->dims == std::vector<std::string>{"M", "N"});
    CHECK(a.find_stage("again")->dims == std::vector<std::string>{"M", "N.bytes"});
    CHECK(to_text(in_bytes(a)) == to_text(a));
    CHECK(to_text(a).find("input codes[N, K.bytes]: u8, of i4[N, K]") != std::string::npos);
    const TileProgram program = lower(product(DType::i4), {}, target_named("avx2"));
    CHECK(to_text(program).find("input codes[N, K.bytes]: u8, of i4[N, K]") != std::string::npos);
    CHECK(verify(program).empty());
    // A dim of two elements in a byte leaves no division.
    Builder f("pairs");
    const Dim P = f.dim("P", 8), H = f.dim("H", 2), K = f.dim("K", 16);
    const Tile codes = f.input("codes", {K}, DType::u4).at({{"K", variable("P") * Expr(2) + variable("H")}}, {"P", "H"});
    const Algorithm pairs = in_bytes(f.output("y", cast(DType::f32, codes)).build());
    CHECK(to_text(pairs).find("codes[P]") != std::string::npos);
}

TEST_CASE("half bytes: calls take tensors of them, a call that repeats does not, and a state is none") {
    Builder g("doubled");
    const Dim N = g.dim("N");
    const Tile in = g.input("codes", {N}, DType::i4);
    const auto doubled = g.output("y", cast(DType::f32, in) * 2).build();
    Builder f("caller");
    const Dim R = f.dim("R", 2), K = f.dim("K");
    const Tile w = f.input("w", {R, K}, DType::i4);
    (void)w;
    const Tile row = f.tile(load("w", DType::i4, {Expr(0), variable("K")}), {K});
    const Algorithm a = f.output("z", f.call("part", doubled, {row})[0] + 1).build();
    const Extents shape = {{"K", 9}};
    const Arrays inputs = make_inputs(a, shape, 1);
    CHECK(differ_in_bits(run_interpreter(lower(a, {}, target_named("avx2")), shape, inputs, {}), run_reference(a, shape, inputs, {})) ==
          "");

    Builder h("step");
    const Dim P = h.dim("P", 4);
    const Tile before = h.input("before", {P}), codes = h.input("codes", {P}, DType::i4);
    const Algorithm step = h.output("after", before + cast(DType::f32, codes)).build();
    Builder layers("layers");
    const Dim L = layers.dim("L"), Q = layers.dim("Q", 4);
    const Tile x = layers.input("x", {Q}), all = layers.input("all", {L, Q}, DType::i4);
    const Tile one = layers.tile(load("all", DType::i4, {variable("L"), variable("Q")}), {L, Q});
    const Algorithm repeated =
        layers.output("y", layers.repeat("layer", step, {.dim = "L", .carried = {{"before", "after"}}}, {x, one})[0]).build();
    check_words([&] { in_bytes(repeated); }, {"error[half-bytes.call]", "'layer'", "step", "repeats", "Pass their codes as u8"});

    // Names that somebody has are not taken.
    Builder c("taken");
    const Dim M = c.dim("M"), B = c.dim(symbolic_dim("M.bytes"));
    const Tile mine = (c.input("i", {M}) * 2.0).named("y.codes");
    c.output("z", c.input("b", {B}));
    const Algorithm taken = c.output("y", cast(DType::i4, mine), DType::i4).build();
    const Extents sizes = {{"M", 5}, {"M.bytes", 2}};
    const Arrays given = make_inputs(taken, sizes, 1);
    CHECK(differ_in_bits(run_interpreter(lower(taken, {}, target_named("avx2")), sizes, given, {}),
                         run_reference(taken, sizes, given, {})) == "");

    check_words(
        [] {
            Builder b("kept");
            const Dim M = b.dim("M");
            const Tile s = b.state("s", {M}, DType::i4);
            b.update("store", s, {b.index(M)}, s);
            b.build();
        },
        {"error[algorithm.type]", "kept.s", "i4", "declare it u8 or i8"});
}

}  // namespace tessera::test_half_bytes

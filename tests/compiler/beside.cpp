// Stages in one loop of another, and scatters: what is refused, and what is right that a reader might doubt.
#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/text/print.h"
#include "algorithms/verify/verify.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "support/text/error.h"
#include "tests/compiler/harness.h"
#include "tests/support/words.h"

namespace tessera::test_beside {

using namespace tessera::test;

namespace {

Knobs with(const Place &place) {
    Knobs k;
    k.place = place;
    return k;
}
Knobs in_loop_of(const std::string &stage, const std::string &loop) { return with({Place::Kind::beside, stage, loop}); }
Knobs placed_at(const std::string &stage, const std::string &loop) { return with({Place::Kind::at, stage, loop}); }
Knobs in_loops(const std::vector<std::string> &loops, const Extents &block = {}) {
    Knobs k;
    k.loops = loops, k.block = block;
    return k;
}
Knobs called(const std::string &how) {
    Knobs k;
    k.call = how;
    return k;
}

void refused(const Algorithm &a, const KnobsByStage &stages, const std::string &words) {
    CHECK_THROWS_WITH(lower(a, stages, target_named("avx2")), Catch::Contains(words));
}

void is_right(const Algorithm &a, const KnobsByStage &stages, const Extents &shape) {
    const TileProgram program = lower(a, stages, target_named("avx2"));
    CHECK_NOTHROW(verify(program));
    const Arrays inputs = make_inputs(a, shape, 3);
    CHECK(differ_in_bits(run_interpreter(program, shape, inputs, {}), run_reference(a, shape, inputs, {})) == "");
}

Algorithm with_outputs(Algorithm a, const std::vector<std::string> &names) {
    a.outputs.insert(a.outputs.end(), names.begin(), names.end());
    verify(a);
    return a;
}

}  // namespace

TEST_CASE("what is folded part by part is not read before all parts are") {
    Builder f("partial");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), t = sum(x, {M}).named("t");  // (N)
    const Algorithm a = f.output("y", x * t).build();
    refused(a, {{"t", in_loop_of("y", "M")}, {"y", in_loops({"M", "N"})}}, "and 'y' reads it before all are");
    Builder g("guests");
    const Dim K = g.dim("K"), L = g.dim("L");
    const Tile z = g.input("z", {K, L}), s = sum(z, {K}).named("s"), d = (z - s).named("d");
    const Algorithm b = with_outputs(g.output("y", z * 2.0).build(), {"s", "d"});
    refused(b, {{"s", in_loop_of("y", "K")}, {"d", in_loop_of("y", "K")}}, "and 'd' reads it before all are");
}

TEST_CASE("what a copy of the host's result takes is made in the iteration") {
    Builder f("next_row");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile u = (f.input("x", {M, N}) * 2.0).named("u");
    const Expr next = variable("M") + 1;
    const Expr read = load_or("u", DType::f32, {next, variable("N")}, next < extent("M"), constant(DType::f32, 0));
    const Algorithm a = f.output("y", f.tile(read, {M, N})).build();
    KnobsByStage stages = {{"u", in_loops({"block.M"}, {{"M", 1}})}, {"y", in_loop_of("u", "block.M")}};
    const std::string words = "and reads of 'u' what is not there yet in the iteration";
    refused(a, stages, words);
    stages["y"].pack["u"] = {"M", {}};
    refused(a, stages, words);
}

TEST_CASE("two loops of equal dims part two dims of a stage, or it stays outside") {
    Builder f("squares");
    const Dim M = f.dim("M");
    Dim same = symbolic_dim("M2");
    same.equals = "M";
    const Dim M2 = f.dim(same);
    const Tile x = f.input("x", {M}), z = f.input("z", {M2}), s = f.state("s", {M});
    f.update("grow", s, {f.index(M)}, s + x);
    const Algorithm a = f.output("y", x * z).build();
    refused(a, {{"grow", in_loop_of("y", "M2")}, {"y", in_loops({"M", "M2"})}}, "have none for the loop 'M2' around it");
    is_right(a, {{"grow", in_loop_of("y", "M")}, {"y", in_loops({"M", "M2"})}}, {{"M", 5}, {"M2", 5}});
}

TEST_CASE("what is placed further out than a stage that it needs is refused") {
    Builder f("order");
    const Dim M = f.dim("M");
    const Tile x = f.input("x", {M}), g = (x + 1.0).named("g"), p = (g * 2.0).named("p");
    const Algorithm a = with_outputs(f.output("y", p + x).build(), {"g"});
    const Knobs host = in_loops({"block.M", "M"}, {{"M", 4}});
    refused(a, {{"y", host}, {"g", in_loop_of("y", "M")}, {"p", placed_at("y", "block.M")}},
            "and 'p' needs 'g', which would run after it there");
    is_right(a, {{"y", host}, {"g", in_loop_of("y", "block.M")}, {"p", placed_at("y", "M")}}, {{"M", 11}});
    Builder u("states");
    const Dim N = u.dim("N");
    const Tile v = u.input("v", {N}), s = u.state("s", {N});
    u.update("grow", s, {u.index(N)}, v * 3.0);
    const Tile q = (s * 2.0).named("q");
    const Algorithm b = u.output("y", q + v).build();
    const Knobs blocks = in_loops({"block.N", "N"}, {{"N", 4}});
    refused(b, {{"y", blocks}, {"grow", in_loop_of("y", "N")}, {"q", placed_at("y", "block.N")}},
            "and 'q' needs 'grow', which would run after it there");
}

TEST_CASE("what is inlined between two stages goes with them") {
    Builder f("between");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), s = sum(abs(x), {N}).named("s"), h = (x / (s + 1.0)).named("h");
    const Algorithm a = with_outputs(f.output("y", h * 2.0).build(), {"s"});
    is_right(a, {{"s", in_loop_of("y", "M")}, {"h", with({Place::Kind::inlined, "", ""})}}, {{"M", 5}, {"N", 7}});
}

TEST_CASE("a fold that is not commutative keeps the order of its dims") {
    Monoid last;  // the last element
    last.name = "last", last.commutative = false;
    last.parts = {{"x", constant(DType::f32, 0)->value, {}}};
    last.inputs = {DType::f32};
    last.lift = last.step = {input(0, DType::f32)}, last.combine = {right(0, DType::f32)};
    Builder f("last");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N});
    const Algorithm a = f.output("y", f.fold(last, {x}, {"M", "N"})[0].named("l")).build();
    refused(a, {{"l", in_loops({"N", "M"})}}, "'last' is not commutative, so its elements have to come in the order of M, N");
    is_right(a, {{"l", in_loops({"M", "N"})}}, {{"M", 3}, {"N", 4}});
}

TEST_CASE("a scatter along a dim that it also folds") {
    Builder f("reversed");
    const Dim T = f.dim("T"), D = f.dim("D");
    const Tile x = f.input("x", {T, D});
    const Tile back = f.tile(extent("D") - 1 - variable("D"), {D});
    const Algorithm a = f.output("y", f.scatter(sum_monoid(DType::f32), x, {back}, {D}).named("s")).build();
    is_right(a, {}, {{"T", 4}, {"D", 9}});
}

TEST_CASE("parts of an in-place fold that nobody reads have no storage") {
    Builder f("mean");
    const Dim T = f.dim("T"), V = f.dim("V"), M = f.dim("M"), N = f.dim("N");
    const Tile ids = f.input("ids", {T}, DType::i32), x = f.input("x", {T}), z = f.input("z", {M, N});
    const Tile mean = f.scatter_parts(welford_monoid(DType::f32), {x}, {ids}, {V})[1];
    const Tile column = f.fold(welford_monoid(DType::f32), {z}, {"M"})[1];
    const Algorithm a = f.output("m", mean).output("c", column).output("y", z * 2.0).build();
    std::string fold;
    for (const Stage &s : a.stages())
        if (is_fold(s) && !scatters(s)) fold = s.name;
    is_right(a, {}, {{"T", 9}, {"V", 4}, {"M", 5}, {"N", 3}});
    is_right(a, {{fold, in_loop_of("y", "M")}, {"y", in_loops({"M", "N"})}}, {{"T", 9}, {"V", 4}, {"M", 5}, {"N", 3}});
}

TEST_CASE("a stage is placed in a loop over an ordinary dim of a scatter") {
    Builder f("rows");
    const Dim T = f.dim("T"), V = f.dim("V"), N = f.dim("N");
    const Tile ids = f.input("ids", {T}, DType::i32), x = f.input("x", {T, N}), e = exp(x).named("e");
    const Algorithm a = f.output("y", f.scatter(sum_monoid(DType::f32), e, {ids, f.index(N)}, {V, N}).named("s")).build();
    is_right(a, {{"e", placed_at("s", "N")}, {"s", in_loops({"N", "T"})}}, {{"T", 9}, {"V", 4}, {"N", 3}});
}

TEST_CASE("a call's result is an output by its name, which nothing else has") {
    Builder c("callee");
    const Dim M = c.dim("M");
    const Tile x = c.input("x", {M});
    const Tile t = (x * 2.0).named("t");
    const Algorithm callee = c.output("o", t + x).output("p", t * x).build();
    Builder f("caller");
    const Dim N = f.dim("N");
    const std::vector<Tile> r = f.call("c", callee, {f.input("x", {N})});
    const Algorithm a = f.output("sum", r[0]).output("both", r[0] * r[1]).build();
    CHECK(a.stages().size() == 1);
    CHECK(to_text(a).find("with o as sum") != std::string::npos);
    for (const char *how : {"inline", "once"}) is_right(a, {{"c", called(how)}}, {{"N", 5}});
    for (const char *name : {"c.p", "c.t"}) {
        Builder g("clash");
        const Dim K = g.dim("K");
        const std::vector<Tile> s = g.call("c", callee, {g.input("x", {K})});
        CHECK_THROWS_WITH(g.output(name, s[0]).build(), Catch::Contains("is used twice"));
    }
}

}  // namespace tessera::test_beside

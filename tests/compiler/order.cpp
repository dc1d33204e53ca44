#include "compiler/rewrite/order.h"

#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/lower/lower.h"
#include "tests/compiler/harness.h"
#include "tests/support/words.h"

namespace tessera::test_order {

using namespace tessera::test;

namespace {

using Stages = KnobsByStage;

Knobs placed(const std::string &stage, const std::string &loop) {
    Knobs k;
    k.place = Place{Place::Kind::at, stage, loop};
    return k;
}

Knobs inlined() {
    Knobs k;
    k.place = Place{Place::Kind::inlined, "", ""};
    return k;
}

// The state as it was is read by a stage that is used after the update.
Algorithm late() {
    Builder f("late");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile s = f.state("s", {M, N}), x = f.input("x", {M, N});
    const Tile old = (s * 2.0).named("old");
    f.update("up", s, {f.index(M), f.index(N)}, x);
    return f.output("y", old + x).build();
}

// Each row becomes the row above it.
Algorithm shifted() {
    Builder f("shifted");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile s = f.state("s", {M, N});
    const Tile above =
        f.tile(load_or("s", DType::f32, {variable("M") - Expr(1), variable("N")}, Expr(1) <= variable("M"), constant(DType::f32, 7)),
               {M, N})
            .named("above");
    f.update("up", s, {f.index(M), f.index(N)}, above);
    return f.build();
}

// Rows are divided by their sums, in place.
Algorithm normalized() {
    Builder f("normalized");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile s = f.state("s", {M, N});
    const Tile total = sum(s, N).named("total");
    f.update("up", s, {f.index(M), f.index(N)}, s / total);
    return f.build();
}

// A call updates what an earlier stage has read.
Algorithm called() {
    Builder g("callee");
    const Dim P = g.dim("P");
    const Tile t = g.state("t", {P}), v = g.input("v", {P});
    g.update("put", t, {g.index(P)}, v);
    const Algorithm callee = g.output("q", v + v).build();
    Builder f("caller");
    const Dim M = f.dim("M");
    const Tile s = f.state("s", {M}), x = f.input("x", {M});
    const Tile before = (s * 3.0).named("before");
    const Tile result = f.call("k", callee, {s, x})[0];
    return f.output("y", result + before).build();
}

void check_refused(const Algorithm &algorithm, const Stages &stages, const std::vector<std::string> &words) {
    check_words([&] { lower(algorithm, stages, target_named("avx2")); }, words);
}

// Sound, by the bits of the algorithm.
void check_same(const Algorithm &algorithm, const Stages &stages) {
    const TileProgram program = lower(algorithm, stages, target_named("avx2"));
    for (const auto &[m, n] : {std::pair<int64_t, int64_t>{0, 3}, {3, 0}, {1, 1}, {5, 7}, {9, 16}}) {
        const Extents shape = {{"M", m}, {"N", n}};
        const Arrays inputs = make_inputs(algorithm, shape, 1, false);
        CHECK(differ_in_bits(run_interpreter(program, shape, inputs, {}), run_reference(algorithm, shape, inputs, {})) == "");
    }
}

}  // namespace

TEST_CASE("what reads a state before an update is not moved behind it") {
    check_refused(late(), {{"old", inlined()}},
                  {"error[schedule.order]: old: it reads the state 's' as it is before the update 'up', and inlined it would run in 'y', "
                   "after it. Place it at root, or at a stage that runs before the update 'up'."});
    check_refused(late(), {{"old", placed("y", "M")}}, {"error[schedule.order]: old: ", "and at y.M it would run in 'y', after it."});
    check_refused(called(), {{"before", inlined()}},
                  {"before: it reads the state 's' as it is before the update 'k.put', and inlined it would run in 'y'"});
    Knobs once;
    once.call = "once";
    check_words(
        [&] {
            lower(called(), {{"before", placed("y", "M")}, {"k", once}}, target_named("avx2"));
        },
        {"before: it reads the state 's' as it is before the call 'k', and at y.M it would run in 'y', after it."});
    check_same(late(), {});
}

TEST_CASE("what is placed in an update's loops reads nothing that earlier iterations wrote") {
    check_refused(shifted(), {{"above", inlined()}},
                  {"error[schedule.order]: up: what is inlined into it reads load_or(s[M - 1, N], 1 <= M, 7.0)",
                   "while it writes other elements of 's'. Place that stage at root."});
    check_refused(shifted(), {{"above", placed("up", "M")}},
                  {"error[schedule.order]: above: it reads the state 's' as it is before the update 'up', and at up.M what it reads",
                   "may have been written by earlier iterations. Place it further out, or at root."});
    check_refused(normalized(), {{"total", placed("up", "N")}}, {"error[schedule.order]: total: ", "and at up.N what it reads (s[M, N])"});
    check_same(normalized(), {{"total", placed("up", "M")}});
    Knobs blocked;
    blocked.block = {{"M", 4}}, blocked.loops = {"block.M", "M", "N"};
    check_same(normalized(), {{"total", placed("up", "block.M")}, {"up", blocked}});
}

}  // namespace tessera::test_order

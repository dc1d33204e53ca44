#include "costmodel/features/loop_nest.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace tessera::test_loop_nest {

static Loop loop(const std::string &variable, LoopKind kind = LoopKind::serial) {
    Loop made;
    made.variable = variable, made.kind = kind;
    return made;
}

TEST_CASE("means are over the iterations of the loops that a value depends on") {
    LoopNest nest;
    nest.enter(loop("i"), 2);
    CHECK(nest.mean_of(min(Expr(24), Expr(28) - variable("i") * Expr(24))) == 14);
    CHECK(nest.mean_of(Expr(7)) == 7);
    nest.enter(loop("j"), 3);
    CHECK(nest.mean_of(variable("i") * Expr(10) + variable("j")) == 6);
    CHECK(nest.mean_of(variable("j") < Expr(1)) == Approx(1.0 / 3));
    CHECK(nest.at.value(variable("j")) == 1);  // where it stood
    nest.leave();
    nest.leave();
    nest.enter(loop("long"), 1001);
    CHECK(nest.mean_of(variable("long")) == Approx(500).epsilon(0.01));
    CHECK(nest.mean_of(variable("long") < Expr(1)) == Approx(1.0 / 1001));
    CHECK(nest.mean_of(variable("long") < Expr(1000)) == Approx(1000.0 / 1001));
    nest.enter(loop("other"), 500);
    nest.enter(loop("third"), 100);
    CHECK(nest.mean_of(variable("third") < Expr(99)) == Approx(0.99));
    CHECK(nest.mean_of(variable("long") + variable("other") + variable("third")) == Approx(500 + 249.5 + 49.5).epsilon(0.01));
}

TEST_CASE("instructions are issued for what varies") {
    LoopNest nest;
    nest.enter(loop("m"), 10);
    nest.enter(loop("k"), 100);
    nest.enter(loop("u", LoopKind::unrolled), 4);
    nest.enter(loop("lane", LoopKind::vector), 32);
    const LoopNest::Mask m = nest.loops_of(variable("m")), k = nest.loops_of(variable("k")), u = nest.loops_of(variable("u")),
                         lane = nest.loops_of(variable("lane"));
    CHECK(nest.issues(m, 4, 64) == 10);               // before the innermost loop
    CHECK(nest.issues(k, 4, 64) == 1000);             // shared by what is unrolled
    CHECK(nest.issues(k | u | lane, 4, 64) == 8000);  // two registers
    CHECK(nest.issues(k | u | lane, 1, 64) == 4000);
    CHECK(nest.turns() == 10 * 100 * 4 * 32);
    CHECK(nest.innermost() == 1u);
    CHECK(nest.is_shared(k | lane));
    CHECK(!nest.is_shared(u | lane));
    CHECK(nest.in_lanes(lane | k));
    CHECK(!nest.in_lanes(k));
    CHECK(nest.lanes() == 32);
    const Let let{"t", variable("m") * Expr(3) + variable("lane"), {}};
    nest.bind(let);
    CHECK(nest.loops_of(variable("t")) == (m | lane));
    CHECK(nest.wraps(variable("t") / Expr(5)) == (m | lane));
    CHECK(nest.wraps(variable("t") + variable("k") / Expr(5)) == k);
    const Let quotient{"q", variable("k") % Expr(7), {}};
    nest.bind(quotient);
    CHECK(nest.wraps(variable("q") + variable("t")) == k);
    CHECK(nest.loops_of(variable("q")) == k);
    nest.unbind(quotient);
    CHECK(nest.moved(variable("t"), 3) == 31);
    CHECK(nest.moved(variable("k") * Expr(-2), 1) == -198);
    nest.unbind(let);
    CHECK(nest.loops_of(variable("t")) == 0);
}

TEST_CASE("loops beyond the 64th are nobody's") {
    LoopNest nest;
    for (int i = 0; i < 70; i++) nest.enter(loop("i" + std::to_string(i)), 2);
    CHECK(nest.loops_of(variable("i63")) == LoopNest::Mask{1} << 63);
    CHECK(nest.loops_of(variable("i69")) == 0);
    CHECK(nest.mean_of(variable("i69")) == 0);
    CHECK(nest.issues(nest.loops_of(variable("i1")), 4, 64) == std::exp2(69));  // all but the innermost
    LoopNest huge;
    huge.enter(loop("i"), 1e30);
    CHECK(huge.mean_of(variable("i")) == Approx(2e18).epsilon(0.01));
}

}  // namespace tessera::test_loop_nest

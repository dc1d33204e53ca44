#include "costmodel/features/loop_nest.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace tessera::test_loop_nest {

// Goes into a loop of so many iterations.
static void enter(LoopNest &nest, const std::string &variable, const Expr &count, LoopKind kind = LoopKind::serial) {
    nest.enter({variable, count, kind, {}}, nest.mean_of(max(count, Expr(0))));
}

TEST_CASE("means are over the iterations of the loops that a value depends on") {
    LoopNest nest;
    enter(nest, "i", Expr(2));
    CHECK(nest.mean_of(min(Expr(24), Expr(28) - variable("i") * Expr(24))) == 14);
    CHECK(nest.mean_of(Expr(7)) == 7);
    enter(nest, "j", Expr(3));
    CHECK(nest.mean_of(variable("i") * Expr(10) + variable("j")) == 6);
    CHECK(nest.mean_of(variable("j") < Expr(1)) == Approx(1.0 / 3));
    CHECK(nest.at.value(variable("j")) == 1);  // where it stood
    nest.leave();
    nest.leave();
    enter(nest, "long", Expr(1001));
    CHECK(nest.mean_of(variable("long")) == Approx(500).epsilon(0.01));
    CHECK(nest.mean_of(variable("long") < Expr(1)) == Approx(1.0 / 1001));
    CHECK(nest.mean_of(variable("long") < Expr(1000)) == Approx(1000.0 / 1001));
    enter(nest, "other", Expr(500));
    enter(nest, "third", Expr(100));
    CHECK(nest.mean_of(variable("third") < Expr(99)) == Approx(0.99));
    CHECK(nest.mean_of(variable("long") + variable("other") + variable("third")) == Approx(500 + 249.5 + 49.5).epsilon(0.01));
}

TEST_CASE("instructions are issued for what varies") {
    LoopNest nest;
    enter(nest, "m", Expr(10));
    enter(nest, "k", Expr(100));
    enter(nest, "u", Expr(4), LoopKind::unrolled);
    enter(nest, "lane", Expr(32), LoopKind::vector);
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

TEST_CASE("counts and conditions around a place say how often it is reached") {
    LoopNest nest;
    enter(nest, "block", Expr(2));
    enter(nest, "tile", min(Expr(24), Expr(32) - variable("block") * Expr(24)));
    CHECK(nest.turns() == 32);
    CHECK(nest.mean_of(variable("block")) == 0.25);  // eight tiles of 32
    const Expr is_first = variable("block") < Expr(1) && variable("tile") < Expr(10);
    CHECK(nest.mean_of(is_first) == 10.0 / 32);
    nest.suppose(is_first, true, 10.0 / 32);
    CHECK(nest.likely() == 10.0 / 32);
    CHECK(nest.mean_of(variable("tile")) == 4.5);
    CHECK(nest.turns_without(nest.loops_of(variable("tile"))) == Approx(10.0 / 24));
    nest.forget();
    nest.suppose(is_first, false, 22.0 / 32);
    CHECK(nest.mean_of(variable("tile")) == Approx((10 + 23) / 2.0 * 14 / 22 + 3.5 * 8 / 22));
    enter(nest, "row", max(Expr(0), Expr(2) - variable("block") * Expr(2)));
    CHECK(nest.turns() == 28);
    CHECK(nest.turns_without(nest.loops_of(variable("row"))) == 14);  // the second block has no rows
    nest.leave();
    nest.forget();
    CHECK(nest.turns() == 32);
}

TEST_CASE("loops beyond the 64th are nobody's") {
    LoopNest nest;
    for (int i = 0; i < 70; i++) enter(nest, "i" + std::to_string(i), Expr(2));
    CHECK(nest.loops_of(variable("i63")) == LoopNest::Mask{1} << 63);
    CHECK(nest.loops_of(variable("i69")) == 0);
    CHECK(nest.mean_of(variable("i69")) == 0);
    CHECK(nest.issues(nest.loops_of(variable("i1")), 4, 64) == std::exp2(70));
}

}  // namespace tessera::test_loop_nest

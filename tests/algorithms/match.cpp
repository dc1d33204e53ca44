#include "algorithms/expr/match.h"

#include <catch2/catch.hpp>

namespace tessera::test_match {

static const Expr a = input(0, DType::f32), b = input(1, DType::f32), x = load("x", DType::f32, {variable("i")}),
                  y = parameter("y", DType::f32);

TEST_CASE("inputs and lefts stand for any expression of their type") {
    Matcher m;
    REQUIRE(m.match(fma(a, b, left(0, DType::f32)), fma(x, y + x, sqrt(y))));
    CHECK(equal(m.inputs.at(0), x));
    CHECK(equal(m.inputs.at(1), y + x));
    CHECK(equal(m.lefts.at(0), sqrt(y)));
    CHECK_FALSE(Matcher().match(a, cast(DType::f64, x)));
}

TEST_CASE("an input stands for one expression, also when it was made twice") {
    CHECK(Matcher().match(a * a, (x + y) * (x + y)));
    CHECK_FALSE(Matcher().match(a * a, x * y));
    CHECK_FALSE(Matcher().match(input(0, DType::f32) * input(0, DType::f32), x * y));
    Matcher m;
    CHECK(m.match(a, x));
    CHECK(m.match(a + b, x + y));
    CHECK_FALSE(Matcher(m).match(b, x));
}

TEST_CASE("all else stands for itself") {
    CHECK(Matcher().match(a + constant(DType::f32, 2), x + constant(DType::f32, 2)));
    CHECK_FALSE(Matcher().match(a + constant(DType::f32, 2), x + constant(DType::f32, 3)));
    CHECK_FALSE(Matcher().match(a + b, x * y));
    CHECK_FALSE(Matcher().match(cast(DType::i8, a, Rounding::nearest_even, true), cast(DType::i8, x, Rounding::nearest_even, false)));
    CHECK_FALSE(Matcher().match(a + x, y + load("z", DType::f32, {variable("i")})));
}

}  // namespace tessera::test_match

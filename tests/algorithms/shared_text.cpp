#include "algorithms/text/shared_text.h"

#include <catch2/catch.hpp>

namespace tessera::test_shared_text {

static const Expr x = load("x", DType::f32, {variable("M")}), y = x * x + constant(DType::f32, 1);

TEST_CASE("shared text: what repeats in any of the expressions is named and written once, below the line") {
    SharedText line({y / abs(y), sqrt(y)});
    CHECK(line(y / abs(y)) == "$0/abs($0)");
    CHECK(line({variable("M"), sqrt(y)}) == "M, sqrt($0)");
    CHECK(line.finish("  ", "y[M] = " + line(y / abs(y))) == "  y[M] = $0/abs($0)\n    $0 = x[M]*x[M] + 1.0\n");
}

TEST_CASE("shared text: names may use earlier names, and undefined expressions are none") {
    Expr z = abs(y * y + x);
    SharedText line({Expr(), z * z});
    CHECK(line.finish("", line(z * z)) == "$1*$1\n  $0 = x[M]*x[M] + 1.0\n  $1 = abs($0*$0 + x[M])\n");
}

TEST_CASE("shared text: few says what stays in its place") {
    SharedText line({y / abs(y)}, 7);
    CHECK(line(y / abs(y)) == "(x[M]*x[M] + 1.0)/abs(x[M]*x[M] + 1.0)");
    CHECK(SharedText({y / abs(y)}, 6)(y) == "$0");
}

TEST_CASE("shared text: equal content gives equal text, however it is shared in memory") {
    Expr again = load("x", DType::f32, {variable("M")}), other = again * again + constant(DType::f32, 1);
    SharedText a({y / abs(y)}), b({y / abs(other)});
    CHECK(a.finish("", a(y / abs(y))) == b.finish("", b(y / abs(other))));
}

TEST_CASE("shared text: it is as long as its distinct nodes, not as its tree") {
    Expr deep = x;
    for (int i = 0; i < 200; i++) deep = deep + deep * y;
    SharedText line({deep});
    CHECK(line.finish("", line(deep)).size() < 10000);
}

}  // namespace tessera::test_shared_text

#include "algorithms/expr/value_numbering.h"

#include <catch2/catch.hpp>
#include <climits>
#include <cmath>

#include "tests/algorithms/samples.h"

namespace tessera::test_value_numbering {

using namespace tessera::test;

// sum(n) uses sum(n - 1) twice: n nodes, 2^n paths.
static Expr doubled(int levels, const std::string &leaf) {
    Expr e = load(leaf, DType::f32, {});
    for (int i = 0; i < levels; i++) e = e + e;
    return e;
}

TEST_CASE("value numbering: numbers are equal exactly for equal expressions") {
    std::mt19937 random(1);
    std::vector<Expr> all;
    for (int i = 0; i < 60; i++) all.push_back(random_expr(random, i % 2 ? DType::f32 : DType::i32, 1 + i % 3));
    for (double value : {0.0, -0.0, static_cast<double>(NAN), 1.0}) all.push_back(constant(DType::f32, value));
    all.push_back(constant(DType::f64, 0));
    ValueNumbering table;
    for (const Expr &a : all)
        for (const Expr &b : all) CHECK((table.number(a) == table.number(b)) == equal(a, b));
}

TEST_CASE("value numbering: numbering is linear where paths are exponential") {
    ValueNumbering table;
    CHECK(table.number(doubled(200, "x")) == table.number(doubled(200, "x")));
    CHECK(table.number(doubled(200, "x")) != table.number(doubled(200, "y")));
    CHECK(table.size() == 402);
    CHECK(table.height(table.number(doubled(200, "x"))) == 201);
}

TEST_CASE("value numbering: a name cannot imitate another field") {
    ValueNumbering table;
    CHECK(table.number(variable("M")) != table.number(extent("M")));
    CHECK(table.number(load("x", DType::f32, {})) != table.number(load("x", DType::f64, {})));
    CHECK(table.number(load("x;0,", DType::f32, {})) != table.number(load("x", DType::f32, {0})));
}

TEST_CASE("value numbering: unique gives one node for equal expressions") {
    ValueNumbering table;
    Expr a = variable("M") + 1, b = variable("M") + 1;
    REQUIRE(a.get() != b.get());
    CHECK(table.unique(a).get() == table.unique(b).get());
    // Within others too, whichever was numbered first.
    const Expr &product = table.unique(b * 2);
    CHECK(product->args[0].get() == table.unique(a).get());
    CHECK(table.number(product) == table.number(a * 2));
    CHECK(equal(product, a * 2));
}

TEST_CASE("value numbering: what repeats and is more than a few nodes is worth naming, as is what nests too deep") {
    ValueNumbering table;
    Expr x = load("x", DType::f32, {variable("M")}), y = load("y", DType::f32, {variable("M")});
    Expr product = x * y;
    int small = table.number(x + x), large = table.number(product + abs(product));
    CHECK(worth_naming(table, {small}, INT_MAX).empty());
    CHECK(worth_naming(table, {large}, INT_MAX) == std::vector<int>{table.number(product)});
    CHECK(worth_naming(table, {table.number(product), table.number(product)}, INT_MAX) == std::vector<int>{table.number(product)});
    CHECK(worth_naming(table, {table.number(abs(abs(abs(abs(x)))))}, 3).size() == 2);
    CHECK(worth_naming(table, {table.number(doubled(100, "x"))}, INT_MAX).size() <= 100);
}

}  // namespace tessera::test_value_numbering

#include "costmodel/features/index_value.h"

#include <catch2/catch.hpp>

namespace tessera::test_index_value {

TEST_CASE("index arithmetic is evaluated where the loops stand") {
    LoopPositions at;
    at.loops = {{"i", 7}, {"j", 2}};
    at.extents = {{"N", 100}};
    at.lets["t"] = variable("i") * Expr(3) + variable("j");
    CHECK(at.value(variable("t")) == 23);
    CHECK(at.value(variable("t") / Expr(5)) == 4);
    CHECK(at.value((Expr(0) - variable("t")) / Expr(5)) == -5);
    CHECK(at.value((Expr(0) - variable("t")) % Expr(5)) == 2);
    CHECK(at.value(variable("t") / Expr(0)) == 0);
    CHECK(at.value(min(extent("N"), variable("t"))) == 23);
    CHECK(at.value(select(variable("i") < Expr(7), Expr(1), Expr(2))) == 2);
    CHECK(at.value(extent("nobody")) == 0);
}

TEST_CASE("positions that are loaded are as far apart as typical rows are long, and other data counts as 0") {
    LoopPositions at;
    at.loops = {{"i", 7}, {"j", 2}};
    const Expr i = variable("i"), j = variable("j");
    CHECK(at.value(cast(DType::index, load("offsets", DType::i64, {i + Expr(1)}) - load("offsets", DType::i64, {i}))) == 64);
    CHECK(at.value(cast(DType::index, load_or("offsets", DType::i32, {i}, i < Expr(9), constant(DType::i32, 0)))) == 7 * 64);
    CHECK(at.value(cast(DType::index, load("table", DType::i32, {i, j}))) == 0);
    CHECK(at.value(load("mask", DType::boolean, {i})) == 0);
    CHECK(at.value(cast(DType::index, load("x", DType::f32, {i}))) == 0);
}

}  // namespace tessera::test_index_value

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

}  // namespace tessera::test_index_value

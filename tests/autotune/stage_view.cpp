#include "autotune/space/stage_view.h"

#include <catch2/catch.hpp>

#include "algorithms/transform/inline_calls.h"
#include "tests/autotune/kernels.h"

namespace tessera::test_stage_view {

using namespace tessera::test;

TEST_CASE("a stage is seen with its dims and how each operand moves with them") {
    const Algorithm a = inline_calls(library::matmul({}));
    const StageView v = view_of(*a.find_stage("y"), a);
    CHECK(v.folds);
    CHECK(v.pure == std::vector<std::string>{"M", "N"});
    CHECK(v.reduced == std::vector<std::string>{"K"});
    REQUIRE(v.operands.size() == 2);
    const Extents extents = {{"M", 8}, {"N", 9}, {"K", 10}};
    CHECK(stride_of(v.operands[0], "K", extents) == Stride::one);
    CHECK(stride_of(v.operands[0], "M", extents) == Stride::other);
    CHECK(stride_of(v.operands[0], "N", extents) == Stride::none);
    CHECK(stride_of(v.operands[1], "N", extents) == Stride::one);
    CHECK(moves_with(v.operands[1], "K", extents));
    CHECK(spans(v.operands[0], {{"M", 4}, {"K", 10}}, extents) == std::vector<int64_t>{4, 10});
}

TEST_CASE("windows reach over what they read") {
    const Expr p = variable("P"), r = variable("R");
    const Operand o{"x", DType::f32, {p * Expr(2) + r}};
    CHECK(spans(o, {{"P", 5}, {"R", 3}}, {}) == std::vector<int64_t>{11});
    CHECK(stride_of(o, "P", {}) == Stride::other);
    CHECK(stride_of(o, "R", {}) == Stride::one);
}

}  // namespace tessera::test_stage_view

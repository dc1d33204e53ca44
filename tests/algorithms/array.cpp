#include "algorithms/evaluate/array.h"

#include <catch2/catch.hpp>

#include "support/text/error.h"

namespace tessera::test_array {

TEST_CASE("an array holds row-major elements of its type") {
    Array a(DType::i8, {2, 3}, {1, 2, 3, 4, 300, -300});
    CHECK(a.size() == 6);
    CHECK(a.data.size() == 6);
    CHECK(a.values() == std::vector<double>{1, 2, 3, 4, 127, -128});
    a.set(5, Scalar::of_integer(DType::i8, 9));
    CHECK(a.get(5).integer == 9);
    int64_t index[] = {1, 2};
    CHECK(a.view("a").address(index) == a.data.data() + 5);
}

TEST_CASE("an array without dims has one element; one with an empty dim has none") {
    CHECK(Array(DType::f32, {}).size() == 1);
    CHECK(Array(DType::f32, {4, 0}).data.empty());
}

TEST_CASE("equality is bitwise") {
    CHECK_FALSE(Array(DType::f32, {1}, {0.0}) == Array(DType::f32, {1}, {-0.0}));
    CHECK(Array(DType::bf16, {1}, {1.001}) == Array(DType::bf16, {1}, {1.0}));
    CHECK_FALSE(Array(DType::f32, {1, 2}) == Array(DType::f32, {2, 1}));
    CHECK(Array::of({2}, {Scalar::of_real(DType::f64, 1), Scalar::of_real(DType::f64, 2)}) == Array(DType::f64, {2}, {1, 2}));
}

TEST_CASE("misuse is an internal error") {
    Array a(DType::f32, {2});
    CHECK_THROWS_AS(a.set(2, Scalar::of_real(DType::f32, 1)), InternalError);
    CHECK_THROWS_AS(a.set(0, Scalar::of_real(DType::f64, 1)), InternalError);
    CHECK_THROWS_WITH(Array(DType::f32, {2}, {1}), Catch::Contains("an array of 2 elements is given 1 values"));
}

}  // namespace tessera::test_array

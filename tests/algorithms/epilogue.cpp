#include "algorithms/build/epilogue.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"

namespace tessera::test_epilogue {

static Options completed(const Options &given) { return complete_options("gemm", library::gemm_options(), given); }

static Array rows(std::vector<int64_t> extents, std::vector<double> values) { return Array(DType::f32, std::move(extents), values); }

TEST_CASE("epilogue: of scale, bias, residual and activation, in this order, what the options say") {
    const Array x = rows({2, 1}, {1, -2}), w = rows({1, 2}, {3, 4}), b = rows({2}, {10, 20}), r = rows({2, 2}, {100, 200, -300, 400});
    const auto of = [&](const Options &options, std::map<std::string, Array> more, const std::map<std::string, Scalar> &parameters = {}) {
        more.insert({{"x", x}, {"w", w}});
        return evaluate(library::gemm({}, completed(options)), more, parameters).at("y").values();
    };
    CHECK(of({}, {}) == std::vector<double>{3, 4, -6, -8});
    CHECK(of({{"bias", 1}}, {{"b", b}}) == std::vector<double>{13, 24, 4, 12});
    CHECK(of({{"scale", 2}, {"bias", 1}, {"residual", 1}, {"activation", 1}}, {{"scale", b}, {"b", b}, {"r", r}}) ==
          std::vector<double>{140, 300, 0, 260});
    CHECK(of({{"scale", 1}, {"bias", 1}}, {{"b", b}}, {{"scale", Scalar::of_real(DType::f32, 0.5)}}) ==
          std::vector<double>{11.5, 22, 7, 16});
    CHECK(of({{"activation", 5}}, {}) == std::vector<double>{3, 4, 0, 0});
}

TEST_CASE("epilogue: relu6 of infinities and NaN") {
    const Array x = rows({4, 1}, {INFINITY, -INFINITY, NAN, 7}), w = rows({1, 1}, {1});
    const std::vector<double> y = evaluate(library::gemm({}, completed({{"activation", 5}})), {{"x", x}, {"w", w}}).at("y").values();
    CHECK(y[0] == 6);
    CHECK(y[1] == 0);
    CHECK(std::isnan(y[2]));
    CHECK(y[3] == 6);
}

TEST_CASE("epilogue: operands transposed are the same product") {
    const Array x = rows({2, 3}, {1, 2, 3, 4, 5, 6}), xt = rows({3, 2}, {1, 4, 2, 5, 3, 6});
    const Array w = rows({3, 2}, {7, 8, 9, 10, 11, 12}), wt = rows({2, 3}, {7, 9, 11, 8, 10, 12});
    for (int64_t tx : {0, 1})
        for (int64_t tw : {0, 1}) {
            const Algorithm a = library::gemm({}, completed({{"transpose_x", tx}, {"transpose_w", tw}}));
            CHECK(evaluate(a, {{"x", tx ? xt : x}, {"w", tw ? wt : w}}).at("y").values() == std::vector<double>{58, 64, 139, 154});
        }
}

}  // namespace tessera::test_epilogue

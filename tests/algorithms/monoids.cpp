// The monoids of the standard vocabulary, which algorithms/ir/monoids.cpp makes.
#include <catch2/catch.hpp>

#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/text/json.h"

namespace tessera::test_monoids {

namespace {

// y[M]: x[M, N] of this type folded over N, and exclusively scanned, in the type of its elements.
Algorithm folded(DType type, Monoid (*monoid)(DType)) {
    Builder f("folded");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}, type);
    const Monoid m = monoid(x.dtype());
    f.output("y", f.fold(m, {x}, {"N"})[0], type);
    return f.output("before", f.scan(m, x, N, false), type).build();
}

Scalar result(const Algorithm &a, const std::string &output, int64_t columns) {
    const Tensor &x = *a.find_tensor("x");
    Array values(x.dtype, {1, columns});
    for (int64_t i = 0; i < columns; i++)
        values.set(i, Scalar::of_integer(x.dtype, traits_of(x.dtype).kind == DTypeKind::truth ? i % 2 : i - 1));
    EvaluationOptions options;
    options.extents = {{"M", 1}, {"N", columns}};
    return evaluate(a, {{"x", values}}, {}, options).at(output).get(0);
}

}  // namespace

TEST_CASE("monoids: the fold of no integers is the identity in the type of the elements, also in what is written and read") {
    for (const DType type : {DType::i4, DType::u4, DType::i8, DType::u8, DType::i32, DType::i64}) {
        const DTypeTraits &t = traits_of(type);
        const std::pair<Monoid (*)(DType), int64_t> identities[] = {{sum_monoid, 0},          {product_monoid, 1},
                                                                   {max_monoid, t.lowest},   {min_monoid, t.highest},
                                                                   {max_number_monoid, t.lowest}};
        for (const auto &[monoid, identity] : identities) {
            const Algorithm a = folded(type, monoid), read = algorithm_from_json(to_json(a));
            INFO(t.name << " " << monoid(DType::i64).name);
            CHECK(result(a, "y", 0).integer == identity);
            CHECK(result(a, "before", 1).integer == identity);
            CHECK(result(read, "y", 0).integer == identity);
            CHECK(to_json(read) == to_json(a));
        }
    }
}

TEST_CASE("monoids: a document whose identity is that of a wider type means the same") {
    const Algorithm a = folded(DType::i8, max_monoid);
    nlohmann::json document = to_json(a);
    document["steps"][0]["reduce"]["monoid"]["parts"][0]["identity"] = {"i32", INT32_MIN};
    const Algorithm read = algorithm_from_json(document);
    CHECK(result(read, "y", 0).integer == INT8_MIN);
    CHECK(result(read, "y", 3).integer == 1);
}

TEST_CASE("monoids: the identity of a fold of what is computed is that of its type") {
    Builder f("folded");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}, DType::i8);
    const Algorithm a = f.output("y", max(x + 1000, N), DType::i32).build();
    EvaluationOptions options;
    options.extents = {{"M", 1}, {"N", 0}};
    CHECK(evaluate(a, {{"x", Array(DType::i8, {1, 0})}}, {}, options).at("y").get(0).integer == INT32_MIN);
}

TEST_CASE("monoids: the largest, the smallest and where it is, of numbers among which is a NaN") {
    Builder f("folded");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N});
    f.output("max", max(x, N)).output("min", min(x, N));
    f.output("number", f.fold(max_number_monoid(DType::f32), {x}, {"N"})[0]);
    const Tile at = f.fold(argmax_monoid(DType::f32), {x, cast(DType::i64, f.index(N))}, {"N"})[1];
    const Algorithm a = f.output("at", at, DType::i64).build();
    for (int64_t nan = 0; nan < 5; nan++) {
        Array values(DType::f32, {5});
        for (int64_t i = 0; i < 5; i++)
            values.set(i, Scalar::of_real(DType::f32, i == nan ? NAN : i == (nan + 2) % 5 ? NAN : -1.0 - static_cast<double>(i)));
        EvaluationOptions options;
        options.extents = {{"N", 5}};
        const auto got = evaluate(a, {{"x", values}}, {}, options);
        CHECK(std::isnan(got.at("max").get(0).real));
        CHECK(std::isnan(got.at("min").get(0).real));
        CHECK(std::isfinite(got.at("number").get(0).real));
        CHECK(got.at("at").get(0).integer == std::min(nan, (nan + 2) % 5));
    }
}

}  // namespace tessera::test_monoids

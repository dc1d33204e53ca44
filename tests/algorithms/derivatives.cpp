// Derivatives of what ships, and of what people write: against differences, and each transpose against what it transposes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/text/print.h"
#include "support/text/error.h"
#include "tests/algorithms/derivative_laws.h"

namespace tessera::test_derivatives {

using namespace tessera::test;

namespace {

struct Shipped {
    Algorithm f;
    Extents extents;
    By by = {};
    std::map<std::string, Array> fixed = {};
};

void check(const Shipped &s) {
    std::mt19937 random(7);
    INFO(s.f.name);
    const Given given = random_given(s.f, s.extents, random, s.fixed);
    const auto forward = error_of_jvp(s.f, s.by, given, random);
    INFO(to_text(jvp(s.f, s.by)));
    INFO(to_text(vjp(s.f, s.by)));
    REQUIRE(forward);
    CHECK(*forward < 1e-6);
    CHECK(error_of_vjp(s.f, s.by, given, random) < 1e-12);
}

const Numerics f32 = numerics_named("f32");

}  // namespace

TEST_CASE("derivatives: products") {
    check({library::matmul(f32), {{"M", 3}, {"N", 4}, {"K", 5}}});
    check({library::linear(f32), {{"M", 3}, {"N", 4}, {"K", 5}}});
    check({library::linear_gelu(f32), {{"M", 3}, {"N", 4}, {"K", 5}}});
    check({library::linear_swiglu(f32), {{"M", 3}, {"N", 4}, {"K", 5}}});
    check({library::gemv(f32), {{"M", 3}, {"K", 5}}});
}

TEST_CASE("derivatives: softmax, losses and norms") {
    check({library::softmax(f32), {{"M", 3}, {"N", 5}}});
    check({library::logsumexp(f32), {{"M", 3}, {"N", 5}}});
    check({library::cross_entropy(f32), {{"M", 3}, {"N", 5}}});
    check({library::layernorm(f32), {{"M", 3}, {"N", 5}}});
    check({library::residual_layernorm(f32), {{"M", 3}, {"N", 5}}});
    check({library::rmsnorm(f32), {{"M", 3}, {"N", 5}}});
    check({library::residual_rmsnorm(f32), {{"M", 3}, {"N", 5}}});
    check({library::group_norm_nhwc(f32), {{"N", 2}, {"P", 3}, {"G", 2}, {"C", 2}}});
    check({library::group_norm_nchw(f32), {{"N", 2}, {"P", 3}, {"G", 2}, {"C", 2}}});
    check({library::batch_norm(f32), {{"M", 3}, {"C", 4}}, {{"x", "gamma", "beta", "mean"}, {}}});
}

TEST_CASE("derivatives: attention") {
    const Extents extents = {{"H", 2}, {"S", 3}, {"T", 4}, {"D", 2}, {"E", 3}};
    check({library::attention(f32), extents});
    check({library::attention_causal(f32), extents});
    check({library::attention_kept(f32), extents});
    check({library::attention_decode(f32), {{"H", 2}, {"G", 2}, {"T", 4}, {"D", 2}, {"E", 3}}});
}

TEST_CASE("derivatives: scans, scatters and what is ragged") {
    check({library::column_sum(f32), {{"M", 3}, {"N", 4}}});
    check({library::cumulative_sum(f32), {{"M", 3}, {"N", 4}}});
    check({library::reverse_cumulative_sum(f32), {{"M", 3}, {"N", 4}}});
    check({library::segmented_cumulative_sum(f32), {{"M", 3}, {"N", 4}}});
    check({library::segmented_sum(f32), {{"B", 3}, {"T", 6}, {"N", 2}}, {}, {{"offsets", Array(DType::i64, {4}, {0, 2, 2, 5})}}});
    check({library::embedding(f32), {{"T", 5}, {"V", 3}, {"D", 2}}});
    check({library::embedding_gradient(f32), {{"T", 5}, {"V", 3}, {"D", 2}}});
    check({library::transpose(f32), {{"M", 3}, {"N", 4}}});
    check({library::concat(f32), {{"M", 2}, {"A", 3}, {"B", 2}}});
}

namespace {

std::vector<std::string> stages_of(const Algorithm &f) {
    std::vector<std::string> names;
    for (const Stage &s : f.stages()) names.push_back(s.name);
    return names;
}

bool is_product_of_loads(const Stage &s) {
    const auto *reduce = std::get_if<Reduce>(&s.body);
    const auto is_load = [](const Expr &e) { return e.kind() == ExprKind::load; };
    return reduce && reduce->monoid.name == "dot" && std::all_of(reduce->inputs.begin(), reduce->inputs.end(), is_load) &&
           reduce->at.empty();
}

}  // namespace

TEST_CASE("derivatives: a product's gradients are products, and nothing else is there") {
    const Algorithm g = vjp(library::linear(f32), {{"x", "w", "b"}, {}});
    CHECK(g.name == "linear.grad");
    CHECK(g.outputs == std::vector<std::string>{"x.grad", "w.grad", "b.grad"});
    CHECK(stages_of(g).size() == 3);
    CHECK(is_product_of_loads(*g.find_stage("x.grad")));
    CHECK(is_product_of_loads(*g.find_stage("w.grad")));
}

// Nothing but the weights and what multiplies them has S by T elements, the maximum is unseen, and no stage scatters.
TEST_CASE("derivatives: attention's is FlashAttention's, five products with the forward's one") {
    const Algorithm g = vjp(library::attention_causal(f32));
    INFO(to_text(g));
    int products = 0, squares = 0;
    for (const Stage &s : g.stages()) {
        CHECK(!scatters(s));
        const bool has_rows = std::count(s.dims.begin(), s.dims.end(), "S") > 0,
                   has_keys = std::count(s.dims.begin(), s.dims.end(), "T") > 0;
        squares += has_rows && has_keys;
        products += is_product_of_loads(s) && s.dims.size() == 3;
        // Keys after the query are in no fold over queries, nor the other way.
        if (const auto *reduce = std::get_if<Reduce>(&s.body); reduce && has_keys && s.name.find("grad") != std::string::npos)
            if (reduce->dims == std::vector<std::string>{"S"}) CHECK(reduce->where.defined());
    }
    CHECK(squares == 4);   // scores, weights, and the gradient of each
    CHECK(products == 5);  // scores; by values, scores' weights, queries, keys
    CHECK(!g.find_stage("online_softmax.m.grad"));
}

TEST_CASE("derivatives: a transpose is the adjoint, and only of what is linear") {
    const Algorithm adjoint = transpose(library::gemv(f32), {"x"});
    CHECK(adjoint.outputs == std::vector<std::string>{"x.grad"});
    const Algorithm back = transpose(adjoint, {"y.grad"});
    std::mt19937 random(3);
    const Given given = random_given(library::gemv(f32), {{"M", 3}, {"K", 4}}, random);
    Given other = given;
    other.tensors["x.grad.grad"] = given.tensors.at("x");
    other.tensors["y.grad"] = Array(DType::f32, {3});
    const Array y = evaluate(library::gemv(f32), given.tensors, {}, Precision::f64).at("y");
    CHECK(evaluate(back, other.tensors, {}, Precision::f64).at("y.grad.grad").values() == y.values());
    try {
        transpose(library::gelu(f32), {"x"});
        FAIL("gelu is not linear");
    } catch (const UserError &e) { CHECK(e.id() == "derivative.linear"); }
    try {
        transpose(library::linear(f32), {"x"});  // of 0 it gives b
        FAIL("a bias is not linear");
    } catch (const UserError &e) { CHECK(e.id() == "derivative.linear"); }
}

TEST_CASE("derivatives: what has none is refused, with the stage and what to do") {
    const auto refusal = [](const Algorithm &f, const By &by) {
        try {
            vjp(f, by);
        } catch (const UserError &e) { return e.id() + " " + e.message(); }
        return std::string("none");
    };
    CHECK_THAT(refusal(library::histogram(f32), {}), Catch::StartsWith("derivative.nothing histogram"));
    CHECK_THAT(refusal(library::linear(f32), {{"v"}, {}}),
               Catch::StartsWith("derivative.unknown linear: a derivative was asked by the float input, "
                                 "state or parameter 'v'; there are x, w, b."));
    CHECK_THAT(refusal(library::cross_entropy(f32), {{"id"}, {}}), Catch::Contains("which holds i32; expected floats"));
    CHECK_THAT(refusal(library::linear(f32), {{"x", "x"}, {}}), Catch::StartsWith("derivative.unknown"));
    const Options three = complete_options("", library::top_k_options(), {{"k", 3}});
    CHECK_THAT(refusal(library::top_k(f32, three), {}), Catch::StartsWith("derivative.bits top_k"));
    CHECK_THAT(refusal(library::sgd_momentum(f32), {}), Catch::StartsWith("derivative."));
    Builder f("volume", f32);
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N});
    f.output("y", f.fold(product_monoid(DType::f32), {x}, {"M", "N"})[0]);
    CHECK_THAT(refusal(f.build(), {}),
               Catch::StartsWith("derivative.fold volume.y: a fold by 'product' over M, N at once has no derivative"));
    try {
        grad(library::linear(f32));
        FAIL("it has rows");
    } catch (const UserError &e) { CHECK(e.id() == "derivative.scalar"); }
}

TEST_CASE("derivatives: equal maxima share a gradient, and a NaN stays where it is") {
    Builder f("most", f32);
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N});
    const Algorithm g = vjp(f.output("y", max(x, N)).build());
    const Array given(DType::f32, {3, 3}, {1, 2, 2, 5, 4, 3, NAN, 1, 1}), weight(DType::f32, {3}, {1, 10, 1});
    const std::vector<double> got = evaluate(g, {{"x", given}, {"y.grad", weight}}).at("x.grad").values();
    CHECK(std::vector<double>(got.begin(), got.begin() + 6) == std::vector<double>{0, 0.5, 0.5, 10, 0, 0});
    for (size_t i = 6; i < 9; i++) CHECK(std::isnan(got[i]));

    Builder s("safe", f32);
    const Dim K = s.dim("K");
    const Tile v = s.input("v", {K});
    const Algorithm h = vjp(s.output("y", select(0.0 < v, log(v), v * 2.0)).build());
    const Array points(DType::f32, {3}, {-1, 0, 4}), one(DType::f32, {3}, {1, 1, 1});
    CHECK(evaluate(h, {{"v", points}, {"y.grad", one}}).at("v.grad").values() == std::vector<double>{2, 2, 0.25});
}

TEST_CASE("derivatives: other policies keep their types") {
    const Algorithm g = vjp(library::linear(numerics_named("bf16")), {{"x", "w"}, {}});
    CHECK(results_of(*g.find_stage("x.grad"))[0].dtype == DType::bf16);
    CHECK(g.find_tensor("y.grad")->dtype == DType::bf16);
    check({library::linear(numerics_named("f64")), {{"M", 3}, {"N", 4}, {"K", 5}}});
    check({library::softmax(numerics_named("f64")), {{"M", 3}, {"N", 4}}});
}

}  // namespace tessera::test_derivatives

// Derivatives of what ships, and of what people write: against differences, and each transpose against what it transposes.
#include <catch2/catch.hpp>

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

}  // namespace tessera::test_derivatives

#include "algorithms/text/print.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "algorithms/functions/functions.h"
#include "algorithms/text/json.h"
#include "tests/algorithms/samples.h"

namespace tessera::test_print {

using namespace tessera::test;

TEST_CASE("print: a matmul reads like its declaration") {
    Algorithm a = matmul();
    a.stages()[1].body = Map{relu(load("acc", DType::f32, {variable("M"), variable("N")}) + load("b", DType::f32, {variable("N")}))};
    std::string relu_text = to_string(std::get<Map>(a.stages()[1].body).values[0].value);
    std::string text = to_text(a);
    std::string head = R"(algorithm matmul: f32 (storage f32, compute f32, accumulate f32, nearest_even)
  dim M: at least 1, at most 4096
  dim N: a multiple of 16
  dim K = 768
  input x[M, K]: f32
  input w[K, N]: f32
  input b[N]: f32
  acc[M, N]: f32 = dot over K of (x[M, K], w[K, N])
  y[M, N]: f32 = )";
    CHECK(text.substr(0, head.size()) == head);
    CHECK(text.find("\n  outputs y\n") != std::string::npos);
}

TEST_CASE("print: what repeats is named under its line") {
    Algorithm a = softmax();
    Expr x = load("x", DType::f32, {variable("M"), variable("N")}), y = x * x + constant(DType::f32, 1);
    a.steps = {Stage{"y", {"M", "N"}, Map{y / abs(y)}}};
    CHECK(to_text(a) == R"(algorithm softmax: f32 (storage f32, compute f32, accumulate f32, nearest_even)
  dim M
  dim N
  input x[M, N]: f32
  y[M, N]: f32 = $0/abs($0)
    $0 = x[M, N]*x[M, N] + 1.0
  outputs y
)");
    Expr deep = x;
    for (int i = 0; i < 100; i++) deep = deep + deep * y;
    a.steps = {Stage{"y", {"M", "N"}, Map{deep}}};
    CHECK(to_text(a).size() < 10000);
}

TEST_CASE("print: every body has its form") {
    CHECK(to_text(histogram()).find("\n  y[N]: i32 = sum over T of (1:i32) where keep[T] at [index(x[T])]\n") != std::string::npos);
    CHECK(to_text(prefix_sums()).find("\n  y[M, N]: f64 = exclusive scan of sum along N of (x[M, N])\n") != std::string::npos);
    CHECK(to_text(suffix_maxima()).find("\n  y[M, N]: f32 = inclusive scan of max backward along N of (x[M, N]) anew where begins[N]\n") !=
          std::string::npos);
    std::string ring = to_text(ring_buffer());
    CHECK(ring.find("\n  state cache[L, D]: f32\n") != std::string::npos);
    CHECK(ring.find("\n  parameter position: i32\n") != std::string::npos);
    CHECK(ring.find("\n  append[B, D]: cache[(index($position) + B)%|L|, D] := row[B, D]\n") != std::string::npos);
    CHECK(ring.find("\n  effects memory\n") != std::string::npos);
    CHECK(to_text(argmax()).find("\n  best[M]: (value: f32, position: i64) = argmax over N of (x[M, N], i64(N))\n") != std::string::npos);
    CHECK(to_text(argmax()).find("\n  dim N: equal to M\n") != std::string::npos);
    CHECK(to_text(attention())
              .find("\n  o[Q]: (m: f32, l: f32, acc[V]: f32) = online_softmax over S of (load_or(scores[Q, S], S <= Q, -inf:f32), v[S, "
                    "V])\n") != std::string::npos);
    CHECK(to_text(layernorm()).find("\n  stats[M]: (n: f32, mean: f32, m2: f32) = welford over K of (f32(x[M, K]))\n") !=
          std::string::npos);
    CHECK(to_text(layernorm()).find("algorithm layernorm: bf16 (storage bf16, compute f32, ") == 0);
    CHECK(to_text(every_expression()).find("\n  constant t[M]: f16 = 0.0:f16, -0.0:f16, ") != std::string::npos);
    for (const Algorithm &a : samples()) CHECK(to_text(a).find("\n  monoid ") == std::string::npos);
}

TEST_CASE("print: long constants are cut, and still told apart") {
    Algorithm a = every_expression(), b = a;
    for (int i = 0; i < 10; i++) a.tensors[2].values.push_back(Scalar::of_real(DType::f16, i));
    b.tensors[2].values = a.tensors[2].values;
    b.tensors[2].values.back() = Scalar::of_real(DType::f16, 99);
    CHECK(to_text(a).find(", ... 18 values, sha256:") != std::string::npos);
    CHECK(to_text(a) != to_text(b));
}

TEST_CASE("print: a monoid that is not standard is defined once") {
    Algorithm a = softmax();
    auto &body = std::get<Reduce>(a.stages()[2].body);
    body.monoid.name = "squares", body.monoid.commutative = false, body.monoid.batch.clear(), body.monoid.batch_parts.clear();
    body.monoid.lift = {input(0, DType::f32) * input(0, DType::f32)};
    body.monoid.step = {fma(input(0, DType::f32), input(0, DType::f32), left(0, DType::f32))};
    a.steps.push_back(a.stages()[2]);
    a.stages().back().name = "again";
    std::string text = to_text(a), definition = R"(  outputs y
  monoid squares(f32), not commutative
    value: f32 from 0.0
      lift in.0*in.0
      combine left.0 + right.0
      step fma(in.0, in.0, left.0)
)";
    REQUIRE(text.size() > definition.size());
    CHECK(text.substr(text.size() - definition.size()) == definition);
}

TEST_CASE("print: callees follow once") {
    std::string text = to_text(feed_forward());
    CHECK(text.find("\n  call first = matmul(K = E, M = B, N = H, b = up_bias, w = up, x = x)\n") != std::string::npos);
    CHECK(text.find("\nalgorithm matmul: ") != std::string::npos);
    CHECK(text.find("\nalgorithm matmul: ") == text.rfind("\nalgorithm matmul: "));
}

TEST_CASE("print: the text depends on the content alone") {
    for (const Algorithm &a : samples()) {
        CHECK(to_text(a) == to_text(algorithm_from_json(to_json(a))));
        CHECK(to_text(a) != to_text(renamed(a, "z")));
    }
}

}  // namespace tessera::test_print

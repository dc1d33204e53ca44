#include "algorithms/evaluate/in_double.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "algorithms/evaluate/reference.h"
#include "algorithms/functions/functions.h"

namespace tessera::test_in_double {

namespace {

constexpr DType f32 = DType::f32;
Expr x() { return load("x", f32, {variable("N")}); }

}  // namespace

TEST_CASE("functions on bits become their f64 selves") {
    using Function = Expr (*)(Expr);
    std::vector<std::pair<Function, std::function<double(double)>>> all = {
        {exp, [](double v) { return std::exp(v); }},
        {log, [](double v) { return std::log(v); }},
        {tanh, [](double v) { return std::tanh(v); }},
        {erf, [](double v) { return std::erf(v); }},
        {sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }},
        {silu, [](double v) { return v / (1 + std::exp(-v)); }},
        {gelu, [](double v) { return v * std::erfc(-v * std::sqrt(0.5)) / 2; }},
        {gelu_tanh, [](double v) { return v / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v))); }}};
    for (auto &[function, expected] : all) {
        Algorithm a;
        a.name = "f";
        a.dims = {symbolic_dim("N")};
        a.tensors = {{"x", f32, {"N"}, Role::input, {}}};
        a.steps = {Stage{"y", {"N"}, Map{function(x() * x()) * constant(f32, 3)}}};
        a.outputs = {"y"};
        double y = evaluate(a, {{"x", Array(f32, {1}, {0.75})}}, {}, Precision::f64).at("y").values()[0];
        CHECK(y == Approx(3 * expected(0.5625)).epsilon(1e-14));
    }
}

TEST_CASE("floats widen, stored tensors and integers keep their type") {
    Expr one = constant(f32, 0.1);
    CHECK(to_string(in_double(x() + one, {"x"})) == to_string(cast(DType::f64, x()) + constant(DType::f64, static_cast<double>(0.1f))));
    CHECK(to_string(in_double(x(), {})) == "x[N]");
    CHECK(in_double(x(), {}).type() == DType::f64);
    CHECK(to_string(in_double(cast(DType::bf16, x() * one), {"x"})) ==
          to_string(cast(DType::f64, x()) * constant(DType::f64, static_cast<double>(0.1f))));
    Expr count = constant_int(DType::i32, 1) + cast(DType::i32, x());
    CHECK(in_double(count, {"x"}).type() == DType::i32);
    CHECK(to_string(in_double(bitcast(DType::i32, x()), {})) == "bitcast<i32>(f32(x[N]))");
}

TEST_CASE("a monoid widens with its parts; an update keeps its state's type") {
    Algorithm a;
    a.name = "a";
    a.dims = {symbolic_dim("N")};
    a.tensors = {{"x", f32, {"N"}, Role::state, {}}};
    a.steps = {Stage{"s", {}, Reduce{welford_monoid(f32), {"N"}, {x()}, {}, {}}},
               Stage{"u", {"N"}, Map({"x", {variable("N")}}, x() + load("s.mean", f32, {}))}};
    Algorithm wide = in_double(a);
    for (const Tensor &t : results_of(wide.stages()[0])) CHECK(t.dtype == DType::f64);
    CHECK(std::get<Map>(wide.stages()[1].body).values[0].value.type() == f32);
    CHECK(std::get<Reduce>(wide.stages()[0].body).inputs[0].type() == DType::f64);
}

}  // namespace tessera::test_in_double

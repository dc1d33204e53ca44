#include "algorithms/ir/parameter.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/index/prove.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/verify/verify.h"
#include "support/text/error.h"

using namespace tessera;

namespace {

ParameterRange range(DType type, const LowerEnd &least, const UpperEnd &most = {}) { return parameter_range("p", type, least, most); }

Scalar real(double value) { return Scalar::of_real(DType::f32, value); }
Scalar integer(int64_t value) { return Scalar::of_integer(DType::i32, value); }

// y[N] = x[N] * p, and with a callee that declares the range, z = callee(x, given).
Algorithm scaled(const std::function<Tile(Builder &)> &declare) {
    Builder f("scaled");
    const Tile x = f.input("x", {f.dim("N")});
    return f.output("y", x * cast(DType::f32, declare(f))).build();
}

Algorithm unit_scaled() {
    return scaled([](Builder &f) { return f.parameter("p", DType::f32, 0, below(1)); });
}

Algorithm calling(const std::function<Tile(Builder &)> &give, const Algorithm &callee) {
    Builder f("calling");
    const Tile x = f.input("x", {f.dim("N")});
    return f.output("z", f.call("c", callee, {x}, {{"p", give(f)}})[0]).build();
}

template <typename F>
std::string words_of(F make) {
    try {
        make();
    } catch (const UserError &e) { return e.words(); }
    return "";
}

}  // namespace

TEST_CASE("a range holds finite numbers between its ends") {
    const ParameterRange both = range(DType::f32, 0, below(1)), positive = range(DType::f32, above(0)), any = range(DType::f32, any_finite);
    for (double in : {0.0, -0.0, 0.5, 0x1p-149}) CHECK(both.contains(real(in)));
    for (double out : {1.0, -0x1p-149, double(NAN), double(INFINITY), -double(INFINITY)}) CHECK_FALSE(both.contains(real(out)));
    CHECK(positive.contains(real(0x1p-149)));
    for (double out : {0.0, -0.0, -1.0, double(NAN), double(INFINITY)}) CHECK_FALSE(positive.contains(real(out)));
    CHECK(any.contains(real(-3e38)));
    for (double out : {double(NAN), double(INFINITY)}) CHECK_FALSE(any.contains(real(out)));
    CHECK(to_string(both) == "at least 0 and below 1");
    CHECK(to_string(positive) == "above 0");
    CHECK(to_string(any) == "finite");
    CHECK(to_string(range(DType::f32, {}, 0.1)) == "at most 0.1");
    CHECK_FALSE(both.contains(Scalar::of_real(DType::f64, 0.5)));
}

TEST_CASE("ends of integers are inside") {
    const ParameterRange r = range(DType::i32, above(0), below(10));
    CHECK(to_string(r) == "at least 1 and at most 9");
    CHECK((r.contains(integer(1)) && r.contains(integer(9)) && !r.contains(integer(0)) && !r.contains(integer(10))));
    CHECK(to_string(range(DType::i32, INT32_MIN, INT32_MAX)) == "any");
    CHECK(to_string(range(DType::i64, 0, INT64_MAX - 1)) == "at least 0 and at most 9223372036854775806");
}

TEST_CASE("a range contains another one, and the nearest of its values") {
    const ParameterRange closed = range(DType::f32, 0, 1), open = range(DType::f32, above(0), below(1));
    CHECK(closed.contains(open));
    CHECK_FALSE(open.contains(closed));
    CHECK(open.contains(open));
    CHECK(range(DType::f32, any_finite).contains(closed));
    CHECK_FALSE(closed.contains(range(DType::f32, 0)));
    CHECK(open.nearest(real(7)) == real(std::nextafter(1.0F, 0.0F)));
    CHECK(open.nearest(real(-7)) == real(0x1p-149));
    CHECK(closed.nearest(real(0.25)) == real(0.25));
    CHECK(range(DType::i32, 3, 5).nearest(integer(9)) == integer(5));
}

TEST_CASE("a range that no value is in, or that is none of the type's, is refused in words") {
    CHECK(words_of([] { range(DType::f32, 2, 1); }) ==
          "error[algorithm.parameter-range]: p: no value is at least 2 and at most 1; expected a lower end below the upper one.");
    CHECK(words_of([] { range(DType::f32, above(1), 1); }).find("no value is above 1 and at most 1") != std::string::npos);
    CHECK(words_of([] { range(DType::f32, above(0), below(0x1p-149)); }).find("no value is") != std::string::npos);
    CHECK(words_of([] { range(DType::i32, above(3), below(4)); }).find("no value is at least 4 and at most 3") != std::string::npos);
    CHECK(words_of([] { range(DType::i64, above(INT64_MAX)); }) != "");
    CHECK(words_of([] { range(DType::i32, 0, int64_t{1} << 40); }) ==
          "error[algorithm.parameter-range]: p: the range's upper end is no finite number of type i32; state one, or leave it out.");
    CHECK(words_of([] { range(DType::i32, 0.5); }).find("lower end is no finite number of type i32") != std::string::npos);
    CHECK(words_of([] { range(DType::f32, double(NAN)); }).find("lower end is no finite number of type f32") != std::string::npos);
    CHECK(words_of([] { range(DType::boolean, 0, 1); }) ==
          "error[algorithm.parameter-range]: p: a range of values of type bool; expected f32, f64, i32 or i64. Declare it without one.");
}

TEST_CASE("ranges are in text, JSON and hashes") {
    const auto plain = scaled([](Builder &f) { return f.parameter("p", DType::f32); });
    const Algorithm a = unit_scaled();
    CHECK(to_text(a).find("parameter p: f32 at least 0 and below 1\n") != std::string::npos);
    CHECK(to_text(plain).find("parameter p: f32\n") != std::string::npos);
    CHECK(semantic_hash(a) != semantic_hash(plain));
    CHECK(to_json(plain)["parameters"][0] == nlohmann::json({{"name", "p"}, {"dtype", "f32"}}));
    CHECK(to_json(a)["parameters"][0]["range"] == nlohmann::json({{"min", "0x0p+0"}, {"below", "0x1p+0"}}));
    for (const Algorithm &one : {a, plain, scaled([](Builder &f) { return f.parameter("p", DType::f64, any_finite); }),
                                 scaled([](Builder &f) { return f.parameter("p", DType::i64, above(3), INT64_MAX - 1); })}) {
        const Algorithm again = algorithm_from_json(to_json(one));
        CHECK(again.parameters == one.parameters);
        CHECK(semantic_hash(again) == semantic_hash(one));
    }
}

TEST_CASE("a document's range is checked") {
    const auto read = [](const nlohmann::json &range, const char *dtype = "f32") {
        nlohmann::json document = to_json(unit_scaled());
        document["parameters"][0]["range"] = range;
        document["parameters"][0]["dtype"] = dtype;
        return words_of([&] { verify(algorithm_from_json(document)); });
    };
    CHECK(read({{"above", "0x0p+0"}}).empty());
    CHECK(read({{"min", "0x0p+0"}, {"above", "0x0p+0"}}).find("expected 'min' or 'above', got both") != std::string::npos);
    CHECK(read({{"min", "inf"}}).find("its range has an end that is no finite number") != std::string::npos);
    CHECK(read({{"min", "0x1p+1"}, {"max", "0x1p+0"}}).find("no value is at least 2 and at most 1") != std::string::npos);
    CHECK(read({{"least", "0x0p+0"}}).find("least") != std::string::npos);
    CHECK(read({{"min", 0}}).empty());
    CHECK(read(nlohmann::json::object(), "bool").find("a range of values of type bool") != std::string::npos);
}

TEST_CASE("the reference refuses a value outside") {
    Array x(DType::f32, {1});
    const auto run = [&](double p) { return words_of([&] { evaluate(unit_scaled(), {{"x", x}}, {{"p", real(p)}}); }); };
    CHECK(run(0.5).empty());
    CHECK(run(1) == "error[reference.parameter]: scaled: the parameter 'p' must be at least 0 and below 1, not 1.");
    CHECK(run(NAN).find("not nan.") != std::string::npos);
}

TEST_CASE("what a callee is given lies in its range") {
    const Algorithm callee = unit_scaled();
    const auto give = [&](const std::function<Tile(Builder &)> &tile) { return words_of([&] { calling(tile, callee); }); };
    CHECK(give([](Builder &f) { return f.scalar(DType::f32, 0.5); }).empty());
    CHECK(give([](Builder &f) { return f.parameter("q", DType::f32, 0.25, 0.5); }).empty());
    CHECK(give([](Builder &f) {
              return f.scalar(DType::f32, 1);
          }).find("must be at least 0 and below 1; got 1.0, which may be at least 1") != std::string::npos);
    CHECK(give([](Builder &f) { return f.parameter("q", DType::f32, 0, 1); }).find("which may be at least 0 and at most 1") !=
          std::string::npos);
    CHECK(give([](Builder &f) { return f.parameter("q", DType::f32) * 0.5; }).find("of which nothing is known") != std::string::npos);
    // One that is passed on as it is takes the callee's.
    const Algorithm passed = calling([](Builder &f) { return f.parameter("q", DType::f32); }, callee);
    CHECK(passed.parameters[0].range == callee.parameters[0].range);
    // Integers that are clamped.
    const Algorithm counted = scaled([](Builder &f) { return f.parameter("p", DType::i32, 0, 9); });
    const auto number = [](Builder &f) { return f.parameter("q", DType::i32); };
    CHECK_NOTHROW(calling([&](Builder &f) { return min(max(number(f), f.scalar(DType::i32, 0)), f.scalar(DType::i32, 9)); }, counted));
    CHECK_NOTHROW(calling([&](Builder &f) { return number(f) && f.scalar(DType::i32, 7); }, counted));
    CHECK(words_of([&] { calling([&](Builder &f) { return min(number(f), f.scalar(DType::i32, 9)); }, counted); }) != "");
}

TEST_CASE("the prover takes a range for a fact") {
    const Parameter p{"p", DType::i32, range(DType::i32, 2, 10)};
    const Bounds facts({symbolic_dim("N")}, {p});
    const Expr at = cast(DType::index, parameter("p", DType::i32));
    CHECK(prove(at >= 2, facts));
    CHECK(prove(at * 3 <= 30, facts));
    CHECK_FALSE(prove(at >= 3, facts));
    CHECK_FALSE(prove(at >= 2, Bounds({symbolic_dim("N")})));
    CHECK(constant_range(at, facts) == std::pair<int64_t, int64_t>{2, 10});
    // An index that only the range keeps inside is legal.
    const auto shifted = [](const LowerEnd &least, const UpperEnd &most) {
        Builder f("shifted");
        Dim N = f.dim("N", 16), M = f.dim("M", 8);
        const Tile x = f.input("x", {N});
        f.parameter("begin", DType::i32, least, most);
        return f.output("y", x.at({{"N", variable("M") + cast(DType::index, parameter("begin", DType::i32))}}, {M.name})).build();
    };
    CHECK_NOTHROW(shifted(0, 8));
    CHECK(words_of([&] { shifted(0, 9); }).find("algorithm.bounds") != std::string::npos);
}

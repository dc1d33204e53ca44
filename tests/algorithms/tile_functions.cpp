#include "algorithms/build/tile_functions.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/evaluate/reference.h"
#include "algorithms/functions/functions.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"

namespace tessera::test_tile_functions {

namespace {

// The operation of two as tiles have it, or a tile and a number on either side.
template <typename A, typename B>
Tile of_two(Op op, const A &a, const B &b) {
    switch (op) {
    case Op::add: return a + b;
    case Op::sub: return a - b;
    case Op::mul: return a * b;
    case Op::div: return a / b;
    case Op::mod: return a % b;
    case Op::min: return min(a, b);
    case Op::max: return max(a, b);
    case Op::bit_and: return a && b;
    case Op::bit_or: return a || b;
    case Op::bit_xor: return a ^ b;
    case Op::shl: return a << b;
    case Op::shr: return a >> b;
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    case Op::le: return a <= b;
    default: throw InternalError(std::string("no operation of two: ") + name_of(op));
    }
}

// The operation as tiles have it. Does not compile without a new operation.
Tile of_tiles(Op op, const Tile &a, const Tile &b, const Tile &c, const Tile &condition) {
    switch (op) {
    case Op::neg: return -a;
    case Op::abs: return abs(a);
    case Op::sqrt: return sqrt(a);
    case Op::floor: return floor(a);
    case Op::ceil: return ceil(a);
    case Op::round: return round(a);
    case Op::trunc: return trunc(a);
    case Op::logical_not: return !a;
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::mod:
    case Op::min:
    case Op::max:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shl:
    case Op::shr:
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le: return of_two(op, a, b);
    case Op::fma: return fma(a, b, c);
    case Op::select: return select(condition, a, b);
    }
    throw InternalError("an operation of unknown kind");
}

}  // namespace

TEST_CASE("tile_functions: tiles have every operation that expressions have") {
    Builder f("f");
    const Dim M = f.dim("M"), N = f.dim("N");
    for (const OpRow &row : op_table) {
        const DType type = row.floats ? DType::f32 : DType::i32;
        const std::string at = row.name;
        const Tile a = f.input("a_" + at, {M, N}, type), b = f.input("b_" + at, {N}, type), c = f.input("c_" + at, {M}, type);
        const Tile condition = f.input("condition_" + at, {M}, DType::boolean);
        std::vector<Expr> operands = {a.value(), b.value(), c.value()};
        if (row.op == Op::select) operands = {condition.value(), a.value(), b.value()};
        operands.resize(static_cast<size_t>(row.arity));
        const Tile made = of_tiles(row.op, a, b, c, condition);
        INFO(row.name);
        CHECK(equal(made.value(), operation(row.op, operands)));
        CHECK(made.dims() == std::vector<std::string>{"M", "N"});
    }
    const Tile a = f.input("a", {M, N}), b = f.input("b", {N});
    CHECK(equal((a > b).value(), a.value() > b.value()));
    CHECK(equal((a >= b).value(), a.value() >= b.value()));
    CHECK((b > f.input("c", {M})).dims() == std::vector<std::string>{"N", "M"});
    CHECK(equal(bitcast(DType::i32, a).value(), bitcast(DType::i32, a.value())));
    const Tile id = f.input("id", {M}, DType::i32);
    CHECK(equal(bounded(id, 0, extent("N")).value(), bounded(id.value(), 0, extent("N"))));
    CHECK_THROWS_WITH(
        a && b,
        Catch::EndsWith("error[expr.type]: and wants an integer or bool operand, got (f32 a[M, N], f32 b[N]); convert with an explicit "
                        "cast."));
}

TEST_CASE("tile_functions: a number stands for a tile of the same type, on either side") {
    Builder f("f");
    const Dim M = f.dim("M");
    for (const DType type : {DType::f32, DType::f64, DType::i32, DType::i64, DType::index})
        for (const OpRow &row : op_table) {
            if (row.arity != 2 || (is_float(type) ? !row.floats : !row.integers)) continue;
            INFO(row.name << " of " << name_of(type));
            const Tile a = cast(type, f.index(M));
            const Expr v = a.value(), three = constant(type, 3);
            for (const Tile &tile : {of_two(row.op, a, 3), of_two(row.op, a, 3.0), of_two(row.op, a, f.scalar(type, 3))})
                CHECK(equal(tile.value(), operation(row.op, {v, three})));
            for (const Tile &tile : {of_two(row.op, 3, a), of_two(row.op, 3.0, a)}) {
                CHECK(equal(tile.value(), operation(row.op, {three, v})));
                CHECK(tile.dims() == std::vector<std::string>{"M"});
            }
        }
    const Tile x = f.input("x", {M});
    CHECK((equal((x > 2).value(), (2 < x).value()) && equal((x >= 2).value(), (2 <= x).value())));
    CHECK((equal((2 > x).value(), (x < 2).value()) && equal((2 >= x).value(), (x <= 2).value())));
}

TEST_CASE("tile_functions: remainders of floats have the sign of either operand") {
    const double inf = INFINITY;
    const std::vector<double> x = {-4.5, 7.25, 5, 4.5, -7.25, 8, 0, -0.0, -3, 3, 1, -1, inf, 1, NAN, 1e10, -6},
                              y = {2, -3.5, 8, -2, 3.5, 5, -2, 2, inf, -inf, inf, -inf, 2, 0, 2, 3, 3};
    for (const DType type : {DType::f32, DType::f64}) {
        Builder f("rests", numerics_named(name_of(type)));
        const Dim N = f.dim("N");
        const Tile a = f.input("x", {N}), b = f.input("y", {N});
        const auto n = static_cast<int64_t>(x.size());
        const auto made =
            evaluate(f.output("c", fmod(a, b)).output("floored", a % b).build(), {{"x", Array(type, {n}, x)}, {"y", Array(type, {n}, y)}});
        for (size_t i = 0; i < x.size(); i++) {
            const double rest = std::fmod(x[i], y[i]), sided = rest != 0 && (rest < 0) != (y[i] < 0) ? rest + y[i] : rest;
            const double c = made.at("c").values()[i], floored = made.at("floored").values()[i];
            INFO(x[i] << " " << y[i]);
            CHECK((c == rest || (std::isnan(c) && std::isnan(rest))));
            CHECK((floored == sided || (std::isnan(floored) && std::isnan(sided))));
            if (rest == 0) CHECK((std::signbit(c) == std::signbit(x[i]) && std::signbit(floored) == std::signbit(y[i])));
        }
    }
}

TEST_CASE("tile_functions: a number that the tile's type does not hold is refused") {
    Builder f("f");
    const Dim M = f.dim("M");
    const Tile i = f.input("i", {M}, DType::i32), x = f.input("x", {M});
    CHECK_THROWS_WITH(
        i * 0.5, Catch::EndsWith(
                     "error[expr.number]: a number beside i[M]: expected one that i32 holds, whole numbers from -2147483648 to 2147483647, "
                     "got 0.5; convert what it meets, as in cast(DType::f32, x), or write another number."));
    CHECK_THROWS_WITH(0.5 - i, Catch::Contains("error[expr.number]"));
    CHECK_THROWS_WITH(max(i, NAN), Catch::Contains("error[expr.number]") && Catch::Contains("got nan"));
    CHECK_THROWS_WITH(i < 3e9, Catch::Contains("as in cast(DType::i64, x)"));
    CHECK_THROWS_WITH(x + 1e39, Catch::Contains("numbers up to 3.40282") && Catch::Contains("as in cast(DType::f64, x)"));
    CHECK_THROWS_WITH(f.scalar(DType::u8, -1), Catch::Contains("error[expr.number]: f: a scalar: expected one that u8 holds, whole numbers "
                                                               "from 0 to 255, got -1; convert what it meets, as in cast(DType::i32, x)"));
    CHECK_THROWS_WITH(f.constant("table", {fixed_dim("T", 2)}, {1, 300}, DType::i8), Catch::Contains("f: the table 'table'"));
    CHECK(equal((i * 2.0).value(), i.value() * constant(DType::i32, 2)));
    CHECK(equal((x < INFINITY).value(), x.value() < constant(DType::f32, INFINITY)));
}

TEST_CASE("tile_functions: powers are those of expressions") {
    Builder f("f");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M}), y = f.input("y", {N});
    CHECK(equal(pow(x, y).value(), pow(x.value(), y.value())));
    CHECK(pow(x, y).dims() == std::vector<std::string>{"M", "N"});
    CHECK(equal(atan2(x, y).value(), atan2(x.value(), y.value())));
    CHECK(atan2(x, y).dims() == std::vector<std::string>{"M", "N"});
    CHECK(equal(sin(x).value(), sin(x.value())));
    CHECK(equal(cos(x).value(), cos(x.value())));
    CHECK(equal(atan(x).value(), atan(x.value())));
    CHECK(equal(expm1(x).value(), expm1(x.value())));
    CHECK(equal(log1p(x).value(), log1p(x.value())));
    CHECK(equal(softplus(x).value(), softplus(x.value())));
    CHECK(equal(erfc(x).value(), erfc(x.value())));
    CHECK(equal(pow(x, 0.5).value(), pow(x.value(), constant(DType::f32, 0.5))));
    CHECK(equal(pow(x, 3).value(), pow(x.value(), 3)));
    CHECK(equal(exp_nonpositive(x).value(), exp_nonpositive(x.value())));
}

TEST_CASE("tile_functions: rmsnorm is right where squares overflow") {
    const std::vector<double> x = {3e38, -3e38, 3e38, 1e30, 1e30, -2e30, 1e19, -4e19, 1, 2, -3, 0.5};
    const Array rows(DType::f32, {4, 3}, x), gamma(DType::f32, {3}, {1, -2, 0.5});
    const std::vector<double> y = evaluate(library::rmsnorm({}), {{"x", rows}, {"gamma", gamma}}).at("y").values();
    for (size_t row = 0; row < 4; row++) {
        long double squares = 0;
        for (size_t i = 0; i < 3; i++) squares += static_cast<long double>(x[3 * row + i]) * x[3 * row + i];
        for (size_t i = 0; i < 3; i++)
            CHECK(y[3 * row + i] ==
                  Approx(static_cast<double>(x[3 * row + i] / std::sqrt(squares / 3 + 1e-6L)) * gamma.values()[i]).epsilon(1e-6));
    }
}

TEST_CASE("tile_functions: logsumexp of infinities is what the formula says") {
    const double inf = INFINITY;
    const Array x(DType::f32, {5, 2}, {-inf, -inf, inf, 1, -inf, 2, NAN, inf, 3e38, 3e38});
    const std::vector<double> y = evaluate(library::logsumexp({}), {{"x", x}}).at("y").values();
    CHECK(y[0] == -inf);
    CHECK(y[1] == inf);
    CHECK(y[2] == 2);
    CHECK(std::isnan(y[3]));
    CHECK(y[4] == x.values()[8]);
}

TEST_CASE("moments: mean, variance and deviation beside double, also far from 0", "[moments]") {
    const int64_t n = 100;
    for (double far : {0.0, 1e5, 1e30}) {
        Builder f("moments");
        const Dim N = f.dim("N");
        const Tile x = f.input("x", {N});
        const Moments of = moments(x, {N}, f.scalar(DType::f32, 1e-5));
        f.output("mean", of.mean())
            .output("variance", of.variance())
            .output("inverse", of.inverse_deviation())
            .output("y", of.normalize(x));
        std::vector<double> values;
        for (int64_t i = 0; i < n; i++)
            values.push_back(static_cast<float>(far + std::cos(static_cast<double>(i)) * std::max(1.0, far / 64)));
        double mean = 0, variance = 0;
        for (double v : values) mean += v / n;
        for (double v : values) variance += (v - mean) * (v - mean) / n;
        const std::map<std::string, Array> got = evaluate(f.build(), {{"x", Array(DType::f32, {n}, values)}});
        CHECK(got.at("mean").values()[0] == Approx(mean).epsilon(1e-6));
        if (far < 1e18) CHECK(got.at("variance").values()[0] == Approx(variance).epsilon(1e-5));
        CHECK(got.at("inverse").values()[0] == Approx(1 / std::sqrt(variance + 1e-5)).epsilon(1e-5));
        CHECK(got.at("y").values()[3] == Approx((values[3] - mean) / std::sqrt(variance + 1e-5)).epsilon(1e-4));
    }
}

}  // namespace tessera::test_tile_functions

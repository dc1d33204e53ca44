#include "algorithms/build/tile_functions.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/evaluate/reference.h"
#include "algorithms/functions/functions.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"

namespace tessera::test_tile_functions {

namespace {

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
    CHECK_THROWS_WITH(a && b,
                      "error[expr.type]: and wants an integer or bool operand, got (f32 a[M, N], f32 b[N]); convert with an explicit "
                      "cast.");
}

TEST_CASE("tile_functions: a number stands for a tile of the same type, on either side") {
    Builder f("f");
    const Dim M = f.dim("M");
    for (DType type : {DType::f32, DType::f64, DType::i32}) {
        const Tile a = f.input(std::string("a_") + name_of(type), {M}, type);
        const Expr v = a.value(), two = constant(type, 2);
        const std::vector<std::pair<Tile, Expr>> all = {
            {a + 2.0, v + two},   {a - 2.0, v - two},   {a * 2.0, v * two},         {a / 2.0, v / two},
            {2.0 + a, two + v},   {2.0 - a, two - v},   {2.0 * a, two * v},         {2.0 / a, two / v},
            {a < 2.0, v < two},   {a <= 2.0, v <= two}, {a > 2.0, v > two},         {a >= 2.0, v >= two},
            {a == 2.0, v == two}, {a != 2.0, v != two}, {min(a, 2.0), min(v, two)}, {max(a, 2.0), max(v, two)}};
        for (const auto &[tile, expected] : all) {
            INFO(to_string(expected));
            CHECK(equal(tile.value(), expected));
            CHECK(tile.dims() == std::vector<std::string>{"M"});
        }
    }
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

}  // namespace tessera::test_tile_functions

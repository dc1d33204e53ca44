#include "algorithms/expr/op.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "algorithms/expr/op_classes.h"
#include "support/text/error.h"

namespace tessera::test_op {

TEST_CASE("op: operations have names") {
    for (const OpRow &row : op_table) {
        CHECK(op_named(row.name) == row.op);
        CHECK(arity(row.op) == (row.op <= Op::logical_not ? 1 : row.op <= Op::le ? 2 : 3));
    }
    CHECK_THROWS_WITH(op_named("sqr"),
                      "error[op.unknown]: there is no operation 'sqr'; the operations are neg, abs, sqrt, floor, ceil, round, "
                      "trunc, not, add, sub, mul, div, mod, min, max, and, or, xor, shl, shr, eq, ne, lt, le, fma, select. "
                      "Did you mean 'sqrt'?");
}

TEST_CASE("op: an operation has a value on what the table says") {
    for (const OpRow &row : op_table) {
        if (row.op == Op::select) continue;
        INFO(row.name);
        auto real = [&] { return row.compares ? compared(row.op, 1.0, 2.0) : real_value(row.op, 1.0, 2.0, 3.0); };
        auto integer = [&] {
            return row.compares ? uint64_t{compared(row.op, int64_t{1}, int64_t{2})} : integer_value(row.op, DType::i64, 1, 2, 3);
        };
        if (row.floats) CHECK_NOTHROW(real());
        else CHECK_THROWS_AS(real(), InternalError);
        if (row.integers) CHECK_NOTHROW(integer());
        else CHECK_THROWS_AS(integer(), InternalError);
    }
}

TEST_CASE("op: a minimum or maximum is NaN where an operand is, and the first of two equal ones") {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (const Op op : {Op::min, Op::max}) {
        for (const auto &[a, b] : {std::pair(nan, 1.0), {1.0, nan}, {nan, nan}, {nan, -1e300}, {1e300, nan}})
            CHECK(std::isnan(real_value(op, a, b, 0.0)));
        CHECK(std::signbit(real_value(op, -0.0, 0.0, 0.0)));
        CHECK(!std::signbit(real_value(op, 0.0, -0.0, 0.0)));
        for (const double x : {-1e300, -2.0, 3.0, 1e300})
            CHECK(real_value(op, x, 1.0, 0.0) == (op == Op::min ? std::fmin(x, 1.0) : std::fmax(x, 1.0)));
    }
}

TEST_CASE("op: a table of code has a row for each operation that it covers, and no other") {
    using Row = OpCode<int>;
    const Row one_missing[] = {{Op::eq, 1}, {Op::ne, 2}, {Op::lt, 3}};
    const Row whole[] = {{Op::eq, 1}, {Op::lt, 3}, {Op::le, 4}, {Op::ne, 2}};
    const Row twice[] = {{Op::eq, 1}, {Op::ne, 2}, {Op::lt, 3}, {Op::le, 4}, {Op::le, 5}};
    const Row extra[] = {{Op::eq, 1}, {Op::ne, 2}, {Op::lt, 3}, {Op::le, 4}, {Op::add, 5}};
    CHECK(OpTable<int>::fits(is_comparison, whole));
    CHECK(!OpTable<int>::fits(is_comparison, one_missing));
    CHECK(!OpTable<int>::fits(is_comparison, twice));
    CHECK(!OpTable<int>::fits(is_comparison, extra));
    const OpTable<int> table(is_comparison, whole);
    CHECK(table.at(Op::ne, "numbers") == 2);
    CHECK(table.at(Op::le, "numbers") == 4);
    CHECK_THROWS_AS(table.at(Op::add, "numbers"), InternalError);
}

TEST_CASE("op: classes say what the values show") {
    const double numbers[] = {-2.5, -1.0, -0.0, 0.25, 1.0, 3.0, 1e300};
    for (const OpClasses &classes : op_classes) {
        const OpRow &row = row_of(classes.op);
        INFO(row.name);
        if (classes.makes_positions) CHECK(row.integers);
        if (classes.unit != OpUnit::simple) CHECK(row.floats);
        if (row.op == Op::select || row.compares || !row.floats) continue;
        bool chooses = true;
        for (double a : numbers)
            for (double b : numbers)
                for (double c : numbers) {
                    const double value = real_value(row.op, a, b, c);
                    chooses &= value == a || (row.arity > 1 && value == b) || (row.arity > 2 && value == c);
                }
        CHECK(chooses == classes.only_chooses);
    }
}

}  // namespace tessera::test_op

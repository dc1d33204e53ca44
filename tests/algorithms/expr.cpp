#include "algorithms/expr/expr.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>

#include "algorithms/text/shared_text.h"
#include "support/text/error.h"

namespace tessera::test_expr {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const Expr i = variable("i"), j = variable("j");
const Expr x = parameter("x", DType::f32), y = parameter("y", DType::f32);
const Expr yes = parameter("yes", DType::boolean), no = parameter("no", DType::boolean);

Expr real(double value) { return constant(DType::f32, value); }

// Random expressions of one type, small enough to meet equal subtrees often.
struct Generator {
    std::mt19937 random;

    int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

    Expr index(int depth) {
        if (depth == 0 || below(6) == 0) {
            switch (below(4)) {
            case 0: return Expr(below(7) - 3);
            case 1: return extent("N");
            default: return variable(std::string(1, static_cast<char>('i' + below(3))));
            }
        }
        Op ops[] = {Op::add, Op::sub, Op::mul, Op::div, Op::mod, Op::min, Op::max, Op::bit_xor, Op::shl, Op::shr};
        switch (below(8)) {
        case 0: return select(boolean(depth - 1), index(depth - 1), index(depth - 1));
        case 1: return bounded(index(depth - 1), Expr(0), extent("N"));
        case 2: return fma(index(depth - 1), index(depth - 1), index(depth - 1));
        default: return operation(ops[below(10)], {index(depth - 1), index(depth - 1)});
        }
    }
    Expr boolean(int depth) {
        Op ops[] = {Op::eq, Op::ne, Op::lt, Op::le};
        if (depth > 0 && below(3) == 0) return below(2) ? boolean(depth - 1) && boolean(depth - 1) : !boolean(depth - 1);
        return operation(ops[below(4)], {index(depth), index(depth)});
    }
    Expr value(int depth) {
        if (depth == 0 || below(6) == 0) {
            switch (below(5)) {
            case 0: return real(below(5) - 2);
            case 1: return input(below(2), DType::f32);
            case 2: return below(2) ? left(0, DType::f32) : right(1, DType::f32);
            case 3: return load_or("t", DType::f32, {index(1)}, boolean(1), real(0));
            default: return load("t", DType::f32, {index(2), variable("k")});
            }
        }
        switch (below(7)) {
        case 0: return select(boolean(depth - 1), value(depth - 1), value(depth - 1));
        case 1: return fma(value(depth - 1), value(depth - 1), value(depth - 1));
        case 2: return sqrt(abs(value(depth - 1)));
        case 3: return cast(DType::f32, index(depth - 1));
        case 4: return bitcast(DType::f32, bitcast(DType::i32, value(depth - 1)));
        default: return operation(below(2) ? Op::add : Op::max, {value(depth - 1), value(depth - 1)});
        }
    }
    Expr any() { return below(2) ? index(1 + below(4)) : value(1 + below(4)); }
};

// The value of an index expression, by scalar.h.
int64_t value_of(const Expr &e, const std::map<std::string, int64_t> &variables) {
    std::map<const Expr::Node *, Scalar> values;
    auto as_index = [](int64_t v) { return Scalar::of_integer(DType::index, v); };
    walk(e, [&](const Expr &n) {
        std::vector<Scalar> args;
        for (const Expr &arg : n->args) args.push_back(values.at(arg.get()));
        switch (n.kind()) {
        case ExprKind::constant: values[n.get()] = n->value; break;
        case ExprKind::variable:
        case ExprKind::extent: values[n.get()] = as_index(variables.at(n->name)); break;
        case ExprKind::bounded: {
            int64_t v = args[0].integer, lo = args[1].integer, hi = args[2].integer;
            values[n.get()] = as_index(std::max(lo, std::min(v, hi - 1)));
            break;
        }
        case ExprKind::operation: values[n.get()] = apply(n->op, args.data()); break;
        default: FAIL("unexpected " << to_string(n));
        }
    });
    return values.at(e.get()).integer;
}

// The same expression with no node shared with the original.
Expr copied(const Expr &e) {
    Expr::Node node = *e.get();
    for (Expr &arg : node.args) arg = copied(arg);
    return Expr(std::move(node));
}

}  // namespace

TEST_CASE("expr: constants fold by the meaning of scalar.h") {
    CHECK((Expr(7) / Expr(-2)).is_constant(-4));
    CHECK((Expr(7) % Expr(-2)).is_constant(-1));
    CHECK(min(Expr(3), Expr(5)).is_constant(3));
    CHECK((Expr(3) < Expr(5)).is_constant(1));
    CHECK(fma(real(2), real(3), real(1))->value == Scalar::of_real(DType::f32, 7));
    CHECK((real(1) / real(0))->value == Scalar::of_real(DType::f32, inf));
    CHECK((real(0.1) + real(0.2))->value == Scalar::of_real(DType::f32, 0.1f + 0.2f));
    CHECK(cast(DType::i8, real(300), Rounding::nearest_even, true).is_constant(127));
    CHECK(bitcast(DType::i32, real(1)).is_constant(0x3f800000));
    CHECK(constant(DType::bf16, 1.001).is_constant());
    CHECK(constant(DType::bf16, 1.001)->value.real == 1);
    CHECK_FALSE(real(1).is_constant(1));
}

TEST_CASE("expr: integer identities") {
    CHECK(equal(i + Expr(0), i));
    CHECK(equal(Expr(0) + i, i));
    CHECK(equal(i - Expr(0), i));
    CHECK(equal(i * Expr(1), i));
    CHECK(equal(Expr(1) * i, i));
    CHECK((i * Expr(0)).is_constant(0));
    CHECK((Expr(0) * i).is_constant(0));
    CHECK(equal(i / Expr(1), i));
    CHECK((i % Expr(1)).is_constant(0));
    CHECK(equal(min(i, i), i));
    CHECK(equal(max(i, i), i));
    CHECK(equal(yes && (Expr(1) == Expr(1)), yes));
    CHECK((yes && (Expr(1) == Expr(2))).is_constant(0));
    CHECK((yes || (Expr(1) == Expr(1))).is_constant(1));
    CHECK(equal(yes || (Expr(1) == Expr(2)), yes));
    CHECK(equal(yes && yes, yes));
    CHECK((yes && no).is_operation(Op::bit_and));
}

TEST_CASE("expr: a float keeps every operation that NaN, -0 or rounding could tell apart") {
    CHECK((x + real(0)).is_operation(Op::add));
    CHECK((x - real(0)).is_operation(Op::sub));
    CHECK((x * real(0)).is_operation(Op::mul));
    CHECK((x * real(1)).is_operation(Op::mul));
    CHECK((x - x).is_operation(Op::sub));
    CHECK(max(x, x).is_operation(Op::max));
    CHECK((x == x).is_operation(Op::eq));
}

TEST_CASE("expr: select folds") {
    CHECK(equal(select(Expr(1) < Expr(2), x, y), x));
    CHECK(equal(select(Expr(2) < Expr(1), x, y), y));
    CHECK(equal(select(yes, x, x), x));
    CHECK(select(yes, x, y).is_operation(Op::select));
    CHECK(select(yes, load("t", DType::bf16, {i}), constant(DType::bf16, 0)).type() == DType::bf16);
}

TEST_CASE("expr: a guard that always holds vanishes") {
    Expr plain = load_or("t", DType::f32, {i}, Expr(1) == Expr(1), real(0));
    CHECK(equal(plain, load("t", DType::f32, {i})));
    Expr guarded = load_or("t", DType::f32, {i}, j < Expr(4), real(0));
    CHECK(guarded->guarded);
    CHECK(has_load(guarded + real(1)));
    CHECK_FALSE(has_load(i + j));
    CHECK(equal(substitute(guarded, {{"j", Expr(3)}}), load("t", DType::f32, {i})));
    CHECK(substitute(guarded, {{"j", Expr(4)}})->guarded);
}

TEST_CASE("expr: types") {
    CHECK((i < j).type() == DType::boolean);
    CHECK((x == y).type() == DType::boolean);
    CHECK(fma(x, y, x).type() == DType::f32);
    CHECK(select(yes, i, j).type() == DType::index);
    CHECK(equal(cast(DType::f32, x), x));
    CHECK(cast(DType::f64, x).type() == DType::f64);
    CHECK(bounded(parameter("n", DType::i32), 0, 8).type() == DType::index);
    CHECK(Expr(3).type() == DType::index);
    CHECK_FALSE(Expr().defined());
}

TEST_CASE("expr: mistaken operands are named") {
    CHECK_THROWS_WITH(x + i,
                      "error[expr.type]: add wants operands of one type, got (f32 $x, index i); convert with an "
                      "explicit cast.");
    CHECK_THROWS_WITH(select(i, x, y),
                      "error[expr.type]: select wants a bool condition, got (index i, f32 $x, f32 $y); "
                      "convert with an explicit cast.");
    Expr narrow = load("t", DType::bf16, {i});
    CHECK_THROWS_WITH(narrow * narrow,
                      "error[expr.type]: mul wants operands of an arithmetic type (f32, f64, i32, i64, bool, index), got "
                      "(bf16 t[i], bf16 t[i]); convert with an explicit cast.");
    CHECK_THROWS_WITH(sqrt(i), Catch::StartsWith("error[expr.type]: sqrt wants a float operand, got (index i)"));
    CHECK_THROWS_WITH(x % y, Catch::StartsWith("error[expr.type]: mod wants an integer operand"));
    CHECK_THROWS_WITH(yes + no, Catch::StartsWith("error[expr.type]: add wants numbers, got (bool $yes, bool $no)"));
    CHECK_THROWS_WITH(operation(Op::shl, {yes, no}), Catch::StartsWith("error[expr.type]: shl wants numbers"));
    CHECK_THROWS_WITH(bitcast(DType::i64, x),
                      "error[expr.bitcast]: bitcast goes between f32 and i32, f64 and i64, or u8 and a type of codes, got f32 "
                      "to i64.");
    CHECK_THROWS_AS(operation(Op::add, {x}), InternalError);
}

TEST_CASE("expr: compare is a total order by content, and equal is its zero") {
    Generator generator{std::mt19937(1)};
    std::vector<Expr> all = {Expr()};
    for (int n = 0; n < 60; n++) all.push_back(generator.any());
    all.push_back(real(0.0));
    all.push_back(real(-0.0));
    all.push_back(real(std::nan("")));
    auto sign = [](int v) { return (v > 0) - (v < 0); };
    for (const Expr &a : all)
        for (const Expr &b : all) {
            REQUIRE(sign(compare(a, b)) == -sign(compare(b, a)));
            REQUIRE(equal(a, b) == (compare(a, b) == 0));
            if (equal(a, b)) REQUIRE(to_string(a) == to_string(b));
            for (const Expr &c : all)
                if (compare(a, b) < 0 && compare(b, c) < 0) REQUIRE(compare(a, c) < 0);
        }
    for (const Expr &a : all)
        if (a.defined()) REQUIRE(equal(a, copied(a)));
    CHECK_FALSE(equal(real(0.0), real(-0.0)));
    CHECK(equal(real(std::nan("")), real(-std::nan(""))));
    CHECK_FALSE(equal(cast(DType::i32, x), cast(DType::i32, x, Rounding::toward_zero)));
}

TEST_CASE("expr: a rewrite without a rule changes nothing") {
    Generator generator{std::mt19937(2)};
    for (int n = 0; n < 500; n++) {
        Expr e = generator.any();
        REQUIRE(rewrite(e, [](const Expr &) { return Expr(); }).get() == e.get());
        REQUIRE(substitute(e, {}).get() == e.get());
        REQUIRE(substitute(e, {{"absent", Expr(1)}}).get() == e.get());
    }
    CHECK_FALSE(rewrite(Expr(), [](const Expr &) { return Expr(); }).defined());
}

TEST_CASE("expr: substitution commutes with evaluation") {
    Generator generator{std::mt19937(3)};
    for (int n = 0; n < 2000; n++) {
        Expr e = generator.index(4), by = generator.index(2);
        std::map<std::string, int64_t> at = {{"i", generator.below(9) - 4}, {"j", generator.below(9)}, {"k", 5}, {"N", 6}};
        std::map<std::string, int64_t> inner = at;
        inner["i"] = value_of(by, at);
        INFO(to_string(e) << " with i = " << to_string(by));
        REQUIRE(value_of(substitute(e, {{"i", by}}), at) == value_of(e, inner));
    }
}

TEST_CASE("expr: substitution is simultaneous and leaves no replaced variable") {
    CHECK(equal(substitute(i - j, {{"i", j}, {"j", i}}), j - i));
    Generator generator{std::mt19937(4)};
    for (int n = 0; n < 500; n++) {
        Expr e = generator.any();
        Expr done = substitute(e, {{"i", Expr(2)}, {"j", extent("N")}});
        REQUIRE_FALSE(uses_variable(done, "i"));
        REQUIRE_FALSE(uses_variable(done, "j"));
        std::set<std::string> before = variables_in(e);
        for (const std::string &name : variables_in(done)) REQUIRE(before.count(name) == 1);
    }
}

TEST_CASE("expr: folding happens again where operands became constants") {
    Expr e = select(i < Expr(4), x, y);
    CHECK(equal(substitute(e, {{"i", Expr(3)}}), x));
    CHECK(equal(substitute(e, {{"i", Expr(4)}}), y));
    CHECK(substitute(i * j + Expr(1), {{"i", Expr(2)}, {"j", Expr(3)}}).is_constant(7));
}

TEST_CASE("expr: a walk sees every node once, operands first") {
    Generator generator{std::mt19937(5)};
    for (int n = 0; n < 200; n++) {
        Expr e = generator.any();
        std::set<const Expr::Node *> seen;
        const Expr::Node *last = nullptr;
        walk(e, [&](const Expr &node) {
            for (const Expr &arg : node->args) REQUIRE(seen.count(arg.get()) == 1);
            REQUIRE(seen.insert(node.get()).second);
            last = node.get();
        });
        REQUIRE(last == e.get());
    }
}

TEST_CASE("expr: shared nodes are visited once") {
    Expr e = x;
    for (int n = 0; n < 60; n++) e = e + e;  // 2^60 paths, 61 nodes
    int visits = 0;
    walk(e, [&](const Expr &) { visits++; });
    CHECK(visits == 61);
    visits = 0;
    rewrite(e, [&](const Expr &) { return visits++, Expr(); });
    CHECK(visits == 61);
}

TEST_CASE("expr: a node knows what is in its tree") {
    Generator generator{std::mt19937(7)};
    for (int n = 0; n < 300; n++) {
        const Expr e = generator.any(), other = copied(e);
        REQUIRE(e->hash == other->hash);
        uint64_t bits = 0;
        bool extents = false, loads = false;
        walk(e, [&](const Expr &node) {
            if (node.kind() == ExprKind::variable) bits |= Expr::Node::bit_of(node->name);
            extents |= node.kind() == ExprKind::extent, loads |= node.kind() == ExprKind::load;
        });
        REQUIRE(e->variables == bits);
        REQUIRE(e->extents == extents);
        REQUIRE(e->loads == loads);
    }
}

TEST_CASE("expr: extents and loads are replaced where they are") {
    const Expr inner = load("t", DType::index, {i + extent("N")}), e = select(j < extent("N"), load("x", DType::f32, {inner}), x);
    const Expr fixed = replace_extents(e, [](const Expr &n) { return n->name == "N" ? Expr(5) : Expr(); });
    CHECK(to_string(fixed) == "select(j < 5, x[t[i + 5]], $x)");
    const Expr moved = replace_loads(e, [](const Expr &n) { return n->name == "t" ? n->args[0] : Expr(); });
    CHECK(to_string(moved) == "select(j < |N|, x[i + |N|], $x)");
    CHECK(equal(replace_loads(i + j, [](const Expr &) { return Expr(1); }), i + j));
}

TEST_CASE("expr: the text form") {
    CHECK(to_string(fma(load("x", DType::f32, {i, j}), load("w", DType::f32, {j}), x)) == "fma(x[i, j], w[j], $x)");
    CHECK(to_string((i + j) * Expr(2)) == "(i + j)*2");
    CHECK(to_string(i + j * Expr(2)) == "i + j*2");
    CHECK(to_string(extent("N") / Expr(8)) == "|N|/8");
    CHECK(to_string(min(i, j)) == "min(i, j)");
    CHECK(to_string(load_or("t", DType::f32, {i}, i < Expr(4), real(0))) == "load_or(t[i], i < 4, 0.0)");
    CHECK(to_string(bounded(i, 0, extent("N"))) == "bounded(i, 0, |N|)");
    CHECK(to_string(cast(DType::i8, x, Rounding::toward_zero, true)) == "i8.sat.rtz($x)");
    CHECK(to_string(bitcast(DType::i32, x)) == "bitcast<i32>($x)");
    CHECK(to_string(left(0, DType::f32) + right(1, DType::f32)) == "left.0 + right.1");
    CHECK(to_string(input(2, DType::f32)) == "in.2");
    CHECK(to_string(constant(DType::f64, 0.5)) == "0.5:f64");
    CHECK(to_string(constant_int(DType::i32, 3)) == "3:i32");
    CHECK(to_string(constant_int(DType::boolean, 1)) == "true");
    CHECK(to_string(real(-inf)) == "-inf:f32");
    CHECK(to_string(real(std::nan(""))) == "nan:f32");
    CHECK(to_string(Expr()) == "undefined");
}

TEST_CASE("expr: what shares much is written in the time of its text, and what nests too deep is refused") {
    Expr squares = x, chain = x;
    for (int n = 0; n < 60; n++) squares = squares * squares + squares;
    CHECK(brief(x + y) == "$x + $y");
    CHECK(brief(squares, 40).size() == 43);
    CHECK_THROWS_WITH(squares + i, Catch::EndsWith("convert with an explicit cast."));
    auto nest = [&] {
        for (int n = 0; n < 5000; n++) chain = chain + x;
    };
    CHECK_THROWS_WITH(nest(), Catch::StartsWith("error[expr.depth]: an expression: expected at most 4096 operations"));
    SharedText text({squares});
    CHECK(text(squares) == "$58*$58 + $58");
    CHECK(text.finish("", "").size() < 3000);
}

}  // namespace tessera::test_expr

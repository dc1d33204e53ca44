#include "algorithms/index/prove.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "support/text/error.h"

namespace tessera::test_prove {

namespace {

Expr v(const std::string &name) { return variable(name); }

Expr both(Expr a, Expr b) { return a && b; }

std::string simple(const Expr &e, const Bounds &b = {}) { return to_string(simplify(e, b)); }

using Values = std::map<std::string, int64_t>;

Scalar evaluate(const Expr &e, const Values &values) {
    if (e.kind() == ExprKind::constant) return e->value;
    if (e.kind() == ExprKind::variable) return Scalar::of_integer(DType::index, values.at(e->name));
    if (e.kind() == ExprKind::extent) return Scalar::of_integer(DType::index, values.at("|" + e->name + "|"));
    std::vector<Scalar> args;
    for (const Expr &arg : e->args) args.push_back(evaluate(arg, values));
    if (e.kind() == ExprKind::bounded) {
        int64_t x = args[0].integer, lo = args[1].integer, last = args[2].integer - 1;
        return Scalar::of_integer(DType::index, std::max(lo, std::min(x, last)));
    }
    return apply(e->op, args.data());
}

struct Generator {
    std::mt19937 random;
    std::vector<Expr> leaves;
    int64_t pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); }
    Expr leaf() {
        if (pick(0, 3) == 0) return Expr(pick(-5, 12));
        return leaves[static_cast<size_t>(pick(0, static_cast<int64_t>(leaves.size()) - 1))];
    }
    Expr index(int depth) {
        if (depth == 0) return leaf();
        Expr a = index(depth - 1), b = index(static_cast<int>(pick(0, depth - 1)));
        static const int64_t divisors[] = {1, 2, 3, 4, 6, 8, 12};
        Expr c = Expr(divisors[pick(0, 6)]);
        switch (pick(0, 13)) {
        case 0:
        case 1:
        case 2: return a + b;
        case 3:
        case 4: return a - b;
        case 5: return a * Expr(pick(-4, 8));
        case 6: return a * c + b;
        case 7: return a / c;
        case 8: return a % c;
        case 9: return pick(0, 3) ? a * leaf() : a / b;
        case 10: return min(a, b);
        case 11: return max(a, b);
        case 12: return pick(0, 3) ? select(condition(1), a, b) : abs(a);
        default: return pick(0, 3) ? leaf() : pick(0, 1) ? bounded(a, leaf(), leaf()) : a % b;
        }
    }
    Expr condition(int depth) {
        Expr a = index(depth), b = index(depth);
        switch (pick(0, depth > 0 ? 6 : 3)) {
        case 0: return a < b;
        case 1: return a <= b;
        case 2: return a == b;
        case 3: return a != b;
        case 4: return both(condition(depth - 1), condition(depth - 1));
        case 5: return condition(depth - 1) || condition(depth - 1);
        default: return !condition(depth - 1);
        }
    }
};

// Variables i in 0..=|M|-1, j in i..=i+3, k in 0..=5, s in |M|-2..=|M|/2, t in 0..=(|M|+3)/4-1 over |M| in 0..=6 and |N| in
// {0, 4, 8}, whose divisor is declared or assumed.
struct Domain {
    Bounds bounds;
    std::vector<Values> points;
    explicit Domain(bool declared) {
        Dim m = symbolic_dim("M"), n = symbolic_dim("N");
        m.max = 6, n.multiple_of = declared ? 4 : 1, n.max = 8;
        bounds = Bounds({m, n});
        if (!declared) bounds.assume(extent("N") % 4 == 0);
        bounds.set("i", 0, extent("M") - 1);
        bounds.set("j", v("i"), v("i") + 3);
        bounds.set("k", 0, 5);
        bounds.set("s", extent("M") - 2, extent("M") / 2);
        bounds.set("t", 0, (extent("M") + 3) / 4 - 1);
        bounds.assume(v("k") + 1 <= extent("N"));
        for (int64_t M = 0; M <= 6; M++)
            for (int64_t N = 0; N <= 8; N += 4)
                for (int64_t i = 0; i < M; i++)
                    for (int64_t j = i; j <= i + 3; j++)
                        for (int64_t k = 0; k <= 5; k++)
                            for (int64_t s = M - 2; s <= M / 2; s++)
                                for (int64_t t = 0; t < (M + 3) / 4; t++)
                                    if (k + 1 <= N)
                                        points.push_back({{"i", i}, {"j", j}, {"k", k}, {"s", s}, {"t", t}, {"|M|", M}, {"|N|", N}});
    }
};

const Domain &domain(int n = 0) {
    static const Domain declared(true), assumed(false);
    return n % 2 ? assumed : declared;
}

const std::vector<Expr> leaves = {v("i"), v("j"), v("k"), v("s"), v("t"), extent("M"), extent("N")};

}  // namespace

TEST_CASE("sums are canonical and read like addresses") {
    Expr i = v("i"), j = v("j"), jb = v("jb");
    CHECK(simple(j + jb * 48) == "jb*48 + j");
    CHECK(simple((jb + 1) * 48 + j - 1) == "jb*48 + j + 47");
    CHECK(simple(i - i) == "0");
    CHECK(simple(Expr(8) - i) == "8 - i");
    CHECK(simple(i * 2 + j - i) == "i + j");
    CHECK(simple(-i) == "i*-1");
    CHECK(simple(i * extent("N") + j) == "i*|N| + j");
    CHECK(simple(fma(i, Expr(4), j)) == "i*4 + j");
}

TEST_CASE("quotients and remainders fold where divisibility or a range decides") {
    Expr j = v("j"), jr = v("jr"), x = v("x"), n = extent("N");
    Bounds b;
    b.set("j", 0, 47);
    CHECK(simple((jr * 48 + j) / 48, b) == "jr");
    CHECK(simple((jr * 48 + j) % 48, b) == "j");
    CHECK(simple((jr * 48 + j + 48) / 48, b) == "jr + 1");
    CHECK(simple((jr * 96 + j * 2) / 96, b) == "jr");
    CHECK(simple((x * 6) / 6) == "x");
    CHECK(simple((x * n) / n) == "x*|N|/|N|");
    CHECK(simple((x / 4) / 3) == "x/12");
    CHECK(simple((x % 12) % 4) == "x%4");
    CHECK(simple((x * 8 + 4) / 4) == "x*2 + 1");
    CHECK(simple((x * 8 + 3) % 4) == "3");
    CHECK(simple((x / 8) * 8 + x % 8) == "x");
    CHECK(simple(x / 0) == "0");
    CHECK(simple((x - x) / -2 - j) == "j*-1");
    CHECK(simple((x * 4 + 2) / 6) == "(x*2 + 1)/3");
}

TEST_CASE("a quotient by a symbolic extent folds when the rest is below it") {
    Bounds b;
    b.set("m", 0, extent("M") - 1);
    b.set("n", 0, extent("N") - 1);
    Expr flat = v("m") * extent("N") + v("n");
    CHECK(simple(flat / extent("N"), b) == "m");
    CHECK(simple(flat % extent("N"), b) == "n");
    CHECK(prove(flat < extent("M") * extent("N"), b));
    CHECK_FALSE(prove(flat + 1 < extent("M") * extent("N"), b));
}

TEST_CASE("extents carry their constraints") {
    Dim n = symbolic_dim("N"), same = symbolic_dim("P"), k = fixed_dim("K", 768);
    n.multiple_of = 16, n.min = 16, n.max = 4096;
    same.equals = "N";
    Bounds b({n, same, k});
    CHECK(simple(extent("N") % 8, b) == "0");
    CHECK(simple(extent("N") / 16 * 16, b) == "|N|");
    CHECK(simple(extent("K") / 48, b) == "16");
    CHECK(simple(extent("P") - extent("N"), b) == "0");
    CHECK(prove(extent("N") >= 16, b));
    CHECK(prove(extent("Q") >= 0, b));
    CHECK(constant_range(extent("N") / 16, b) == std::pair<int64_t, int64_t>(1, 256));
    CHECK(constant_range(extent("N") * 2 + 1, b) == std::pair<int64_t, int64_t>(33, 8193));
    b.set("j", 0, 15);
    CHECK(simple((extent("N") + v("j")) / 16, b) == "|N|/16");
}

TEST_CASE("an assumed divisor folds like a declared one") {
    Expr M = extent("M"), x = v("x"), y = v("y");
    Bounds b;
    CHECK(simple(M % 8, b) == "|M|%8");
    b.assume(M % 16 == 0);
    b.assume(x % 4 == 0 && 0 == x % 6);
    b.assume((x + y) % 8 == 3);
    CHECK(simple(M % 8, b) == "0");
    CHECK(simple((M + 15) / 16 * 16, b) == "|M|");
    CHECK(simple(x % 12, b) == "0");
    CHECK(simple(x % 24, b) == "x%24");
    CHECK(simple((y + x) % 8, b) == "3");
    CHECK(prove(M % 4 == 0, b));
    CHECK_FALSE(prove(M % 32 == 0, b));
    b.set("m", 0, M / 16 - 1);
    b.set("i", 0, 15);
    CHECK(prove(v("m") * 16 + v("i") < M, b));
}

TEST_CASE("ranges decide minima, comparisons, selects and guards") {
    Bounds b;
    b.set("i", 0, 7);
    Expr i = v("i");
    CHECK(simple(min(i, Expr(9)), b) == "i");
    CHECK(simple(max(i, Expr(9)), b) == "9");
    CHECK(simple(select(i < 8, i, Expr(0)), b) == "i");
    CHECK(simple(i + 1 <= v("n"), b) == "i + 1 <= n");
    CHECK(simple(i * 8 < v("n") * 8 + 5, b) == "i < n + 1");
    CHECK(simple(load_or("x", DType::f32, {i}, i < 8, constant(DType::f32, 0)), b) == "x[i]");
    CHECK(simple(load_or("x", DType::f32, {i}, i < 0, constant(DType::f32, 2)), b) == "2.0");
    CHECK(simple(load("x", DType::f32, {i + 1 - i}), b) == "x[1]");
    CHECK(simple(!(i < v("n")), b) == "n <= i");
    Expr nan = constant(DType::f32, std::nan(""));
    CHECK(simple(load("x", DType::f32, {i}) * nan, b) == to_string(load("x", DType::f32, {i}) * nan));
}

TEST_CASE("a variable with one value is that value") {
    Bounds b;
    b.set("t", 0, 0);
    b.set("u", v("w") + 1, v("w") + 1);
    CHECK(simple(v("t") * 8 + v("u"), b) == "w + 1");
}

TEST_CASE("proofs use tile loops, facts and cases") {
    Expr M = extent("M");
    Bounds b;
    b.set("mo", 0, M / 8 - 1);
    b.set("mi", 0, 7);
    CHECK(prove(v("mo") * 8 + v("mi") < M, b));
    CHECK_FALSE(prove(v("mo") * 8 + v("mi") + 1 < M, b));

    Bounds tail;
    tail.set("mo", 0, (M + 7) / 8 - 1);
    tail.set("mi", 0, min(Expr(7), M - v("mo") * 8 - 1));
    CHECK(prove(v("mo") * 8 + v("mi") < M, tail));
    CHECK(prove(v("mo") * 8 < M, tail));

    Bounds full;
    full.set("m0", 0, M - 1);
    full.set("mi", 0, 7);
    CHECK_FALSE(prove(v("m0") + v("mi") < M, full));
    full.assume(v("m0") + 8 <= M);
    CHECK(prove(v("m0") + v("mi") < M, full));
    CHECK(simple(min(v("m0") + 8, M), full) == "m0 + 8");

    Bounds shifted;
    shifted.assume(M >= 8);
    shifted.set("mo", 0, (M + 7) / 8 - 1);
    shifted.set("mi", 0, 7);
    Expr m = min(v("mo") * 8, M - 8) + v("mi");
    CHECK(prove(both(m >= 0, m < M), shifted));
}

TEST_CASE("a derived extent is its size, or 0 where that is negative") {
    Dim h = symbolic_dim("H"), r = fixed_dim("R", 3), p = derived_dim("P", extent("H") - 2);
    Bounds b({h, r, p});
    b.set("p", 0, extent("P") - 1);
    b.set("r", 0, extent("R") - 1);
    CHECK(prove(v("p") + v("r") < extent("H"), b));
    CHECK_FALSE(prove(v("p") + v("r") + 1 < extent("H"), b));
    CHECK(prove(extent("P") <= extent("H"), b));
    CHECK_FALSE(prove(extent("P") + 2 <= extent("H"), b));
    CHECK(prove(extent("P") >= 0, b));
}

TEST_CASE("a clamped index lies in its range when the range is not empty") {
    Expr t = bounded(load("t", DType::i32, {v("i")}), 0, extent("V"));
    CHECK_FALSE(prove(t < extent("V"), Bounds()));
    CHECK_FALSE(prove(t >= 0, Bounds()));
    Dim some = symbolic_dim("V");
    some.min = 1;
    CHECK(prove(both(t >= 0, t < extent("V")), Bounds({some})));
}

TEST_CASE("symbolic bounds eliminate variables, innermost first") {
    Bounds b;
    b.set("mo", 0, extent("M") / 8 - 1);
    b.set("mi", 0, 7);
    b.set("m", v("mo") * 8, v("mo") * 8 + 7);
    Expr x = v("mo") * 8 + v("mi");
    CHECK(to_string(upper_bound(x, b, {"mi"})) == "mo*8 + 7");
    CHECK(to_string(lower_bound(x, b, {"mi"})) == "mo*8");
    CHECK(to_string(upper_bound(x, b, {"mi", "mo"})) == "|M|/8*8 - 1");
    CHECK(to_string(upper_bound(v("m") - v("mo") * 8, b, {"m", "mo"})) == "7");
    CHECK(to_string(upper_bound(min(v("m"), extent("L")), b, {"m"})) == "min(|L|, mo*8 + 7)");
    CHECK(to_string(upper_bound(v("mi") * extent("N"), b, {"mi"})) == "|N|*7");
    CHECK(to_string(lower_bound(v("mi") / 2 - v("mi") % 3, b, {"mi"})) == "-2");
    // What is left of a tile: the minimum is correlated with the start.
    b.set("t", 0, (extent("M") + 7) / 8 - 1);
    Expr start = v("t") * 8;
    CHECK(to_string(upper_bound(start + min(Expr(8), extent("M") - start), b, {"t"})) == "|M|");
    CHECK_FALSE(upper_bound(v("free"), b, {"free"}).defined());
    CHECK_FALSE(upper_bound(cast(DType::index, load("t", DType::i64, {v("mi")})), b, {"mi"}).defined());
}

TEST_CASE("arithmetic that leaves 64 bits is left as it is") {
    Expr big = v("x") * Expr(INT64_MAX), e = big + big;
    CHECK(to_string(simplify(e, Bounds())) == to_string(e));
    CHECK_FALSE(prove(e >= 0, Bounds()));
    CHECK_FALSE(constant_range(e, Bounds()));
    Expr deep = v("x");
    for (int i = 0; i < 3000; i++) deep = bounded(deep, 0, i + 2);
    CHECK(simplify(deep, Bounds()).defined());
}

TEST_CASE("law: simplify keeps the value and is idempotent") {
    Generator g{std::mt19937(1), leaves};
    for (int n = 0; n < 3000; n++) {
        Expr e = g.index(1 + n % 4), s = simplify(e, domain(n).bounds);
        INFO(to_string(e) << "  ->  " << to_string(s));
        CHECK(to_string(simplify(s, domain(n).bounds)) == to_string(s));
        for (size_t p = n % 7; p < domain(n).points.size(); p += 7)
            if (evaluate(e, domain(n).points[p]).integer != evaluate(s, domain(n).points[p]).integer) FAIL("differs");
    }
}

TEST_CASE("law: ranges and bounds contain every value") {
    Generator g{std::mt19937(2), leaves};
    int known = 0;
    for (int n = 0; n < 2000; n++) {
        Expr e = g.index(1 + n % 3);
        auto range = constant_range(e, domain(n).bounds);
        Expr lo = lower_bound(e, domain(n).bounds, {"i", "j", "k"}), hi = upper_bound(e, domain(n).bounds, {"i", "j", "k"});
        if (lo.defined()) known++;
        for (const Values &p : domain(n).points) {
            int64_t x = evaluate(e, p).integer;
            bool inside = !range || (range->first <= x && x <= range->second);
            bool above = !lo.defined() || evaluate(lo, p).integer <= x, below = !hi.defined() || x <= evaluate(hi, p).integer;
            if (inside && above && below) continue;
            INFO(to_string(e) << " is " << x << ", bounds " << to_string(lo) << " and " << to_string(hi));
            FAIL("outside");
        }
        for (const Expr &end : {lo, hi})
            if (end.defined())
                for (const char *name : {"i", "j", "k"}) CHECK_FALSE(uses_variable(end, name));
    }
    CHECK(known > 1500);
}

TEST_CASE("a derived extent cancels a quotient that its size has") {
    Dim H = symbolic_dim("H"), R = symbolic_dim("R");
    Expr positions = (extent("H") - extent("R") + 6) / Expr(2) + 1;
    Bounds b({H, R, derived_dim("P", positions)});
    b.set("block", 0, (positions + 2) / Expr(3) - 1);
    b.set("p", 0, min(Expr(3), positions - variable("block") * Expr(3)) - 1);
    CHECK(prove(variable("block") * Expr(3) + variable("p") < extent("P"), b));
    CHECK_FALSE(prove(variable("block") * Expr(3) + variable("p") + 1 < extent("P"), b));
}

TEST_CASE("quotients of an extent are counted in what it is a multiple of") {
    Dim W = symbolic_dim("W");
    W.min = 32, W.multiple_of = 32;
    const Expr w = extent("W");
    Bounds b({W});
    CHECK(prove(w / 2 == w / 32 * 16, b));
    CHECK(prove((w + 1) / 2 == w / 32 * 16, b));
    CHECK(prove(w / 32 * 32 == w, b));
    CHECK(prove(w / 32 * 2 <= (w + 128) / 160 * 10, b));
    CHECK_FALSE(prove(w / 32 * 2 <= (w + 96) / 160 * 10, b));
    CHECK(prove(w / 3 * 3 <= w, b));
    CHECK_FALSE(prove(w / 3 * 3 == w, b));
}

TEST_CASE("a tile that runs past what lives stays inside of what is whole tiles") {
    const Expr room = extent("pages") * 16, live = v("live"), tile = min(Expr(128), live - v("o") * 128);
    Bounds b;
    b.set("live", 0, room);
    b.set("o", 0, (live + 127) / 128 - 1);
    b.set("t", 0, (tile + 3) / 4 - 1);
    b.set("u", 0, 3);
    const Expr at = v("t") * 4 + v("u");
    CHECK(prove(at < min(Expr(128), room), b));
    CHECK_FALSE(prove(at + 1 < min(Expr(128), room), b));
    b.set("t", 0, (live + 4) / 5 - 1);
    CHECK_FALSE(prove(v("t") * 5 + v("u") < room, b));  // 16 pages are no whole tiles of 5
}

TEST_CASE("a variable cancels a quotient that its range has") {
    const Expr whole = (extent("E") + 7) / 8;
    Bounds b;
    b.set("e", 0, whole - 1);
    b.set("lane", 0, 7);
    CHECK(prove(v("e") * 8 + v("lane") < whole * 8, b));
    CHECK_FALSE(prove(v("e") * 8 + v("lane") + 1 < whole * 8, b));
}

TEST_CASE("quotients by one divisor are in the order of their dividends") {
    const Expr T = extent("T"), x = v("x"), y = v("y"), tile = min(Expr(128), T - v("o") * 128);
    Bounds b;
    b.set("o", 0, (T + 127) / 128 - 1);
    b.set("t", 0, (tile + 3) / 4 - 1);
    b.set("u", 0, 3);
    const Expr at = v("t") * 4 + v("u"), room = (min(Expr(128), T) + 3) / 4 * 4;
    CHECK(prove(at < room, b));
    CHECK_FALSE(prove(at + 1 < room, b));
    Bounds order;
    order.assume(x + 7 <= y);
    CHECK(prove(x / 5 + 1 <= y / 5, order));
    CHECK_FALSE(prove(x / 5 + 2 <= y / 5, order));
    CHECK_FALSE(prove(x / 8 + 1 <= y / 8, order));
    order.assume(Expr(3) <= extent("D"));
    CHECK(prove(x / extent("D") <= y / extent("D"), order));
}

// What a copy in tiles of `tile` positions says of an axis that holds `factor` of them, whatever else takes the loop apart.
TEST_CASE("law: whole tiles stay inside of a layout whose digits they divide") {
    std::mt19937 random(7);
    const auto pick = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
    const Expr K = extent("K"), t = v("t"), u = v("u");
    const auto whole = [](const Expr &n, int64_t tile) { return (n + (tile - 1)) / Expr(tile); };
    for (int n = 0; n < 200; n++) {
        const int64_t tile = pick(1, 12), digit = tile * pick(1, 6), factor = digit * pick(1, 6), block = tile * pick(1, 40);
        INFO("tiles of " << tile << ", digits of " << digit << " in " << factor << ", blocks of " << block);
        Bounds b;
        Expr at = t * tile + u;
        if (n % 2) {
            b.set("o", 0, whole(K, block) - 1);
            b.set("t", 0, whole(min(Expr(block), K - v("o") * block), tile) - 1);
            at = v("o") * block + at;
        } else {
            b.set("t", 0, whole(K, tile) - 1);
        }
        b.set("u", 0, tile - 1);
        CHECK(prove(at / factor < whole(K, factor), b));
        CHECK_FALSE(prove(at / factor + 1 < whole(K, factor), b));
        CHECK(prove(at % factor / digit < factor / digit, b));
        CHECK(simple(at / factor, b) == simple((at - u) / tile / (factor / tile), b));
        CHECK(simple(at % factor, b) == simple((at - u) / tile % (factor / tile) * tile + u, b));
    }
}

TEST_CASE("a quotient of a quotient is one by the product: in order with one by it") {
    const Expr x = v("x"), y = v("y");
    Bounds b;
    b.assume(x * 3 + 2 <= y);
    CHECK(prove(x / 5 <= y / 15, b));
    CHECK_FALSE(prove(x / 5 + 1 <= y / 15, b));
    CHECK_FALSE(prove(x / 4 <= y / 15, b));
    CHECK_FALSE(prove(x / 5 <= y / 30, b));
    b.assume(x * 3 + 17 <= y);
    CHECK(prove(x / 5 + 1 <= y / 15, b));
}

TEST_CASE("a variable has a value: also where the minimum that uses it is its other operand") {
    const Expr M = extent("M"), window = extent("W") - extent("S");
    Bounds b;
    b.set("m", 0, (M + 7) / 8 - 1);
    b.set("u", 0, 7);
    CHECK(prove(Expr(0) <= min(v("m") * 8 + v("u"), M - 1), b));
    CHECK_FALSE(prove(Expr(0) <= min(v("m") * 8 + v("u"), M - 2), b));
    b.set("q", 0, window / 6);
    b.set("s", 0, extent("S") - 1);
    CHECK(prove(Expr(0) <= v("s") + min(v("q") * 6 + v("u"), window), b));
    CHECK_FALSE(prove(Expr(0) < v("s") + min(v("q") * 6 + v("u"), window), b));
}

TEST_CASE("a quotient is a whole number") {
    const Expr D = extent("W") - extent("S"), at = min(v("q") * 6 + v("u"), D / 2 + 3) * 2 + v("s");
    Bounds b;
    b.set("q", 0, (D / 2 + 3) / 6);
    b.set("u", 0, 5);
    b.set("s", 0, extent("S") - 1);
    CHECK(prove(Expr(0) <= at, b));
    CHECK_FALSE(prove(Expr(0) < at, b));
    CHECK(prove(at < D / 2 * 2 + extent("S") + 6, b));
    CHECK_FALSE(prove(at + 1 < D / 2 * 2 + extent("S") + 6, b));
}

TEST_CASE("what is known in a scope is not known around it, nor in another copy") {
    const Expr i = variable("i"), j = variable("j");
    Bounds outer;
    outer.set("i", Expr(0), Expr(7));
    CHECK(prove(i < Expr(8), outer));
    CHECK_FALSE(prove(i + j < Expr(12), outer));  // an answer that is remembered
    Bounds inner = outer, assumed = outer, wider = outer;
    inner.set("j", Expr(0), Expr(3));
    assumed.assume(i < Expr(4));
    wider.set("i", Expr(0), Expr(9));
    CHECK(prove(i + j < Expr(12), inner));
    CHECK(prove(i < Expr(4), assumed));
    CHECK_FALSE(prove(i < Expr(8), wider));
    CHECK(prove(i < Expr(10), wider));
    CHECK_FALSE(prove(i < Expr(4), outer));
    CHECK_FALSE(prove(i + j < Expr(12), outer));
    // A fact that speaks of a variable before its range is known.
    Bounds early;
    early.assume(i <= j);
    CHECK_FALSE(prove(i < Expr(4), early));
    early.set("j", Expr(0), Expr(3));
    CHECK(prove(i < Expr(4), early));
}

TEST_CASE("law: what is proved holds") {
    Generator g{std::mt19937(3), leaves};
    int proved = 0, held = 0;
    for (int n = 0; n < 4000; n++) {
        Expr c = g.condition(n % 3);
        bool holds = true;
        for (const Values &p : domain(n).points) holds &= evaluate(c, p).truth();
        held += holds;
        if (!prove(c, domain(n).bounds)) continue;
        proved++;
        INFO(to_string(c));
        CHECK(holds);
    }
    CHECK(proved > held / 2);
    WARN("proved " << proved << " of " << held);
}

// The conditions around the bodies of a partial tile of 128 rows by 8, as far in as they go: each makes a minimum that is to be simplified,
// and none of them can be shown to hold or not to.
TEST_CASE("a proof ends after a bounded number of steps, those of what it simplifies included") {
    Dim t;
    t.name = "T";
    Bounds facts({t});
    const Expr left = min(Expr(128), extent("T") - v("t.o") * 128);
    facts.set("t.o", Expr(0), (extent("T") + 127) / 128 - 1);
    facts.set("t.micro", Expr(0), (left + 7) / 8 - 1);
    for (const Expr &condition : {left < v("t.micro") * 8 + 8, v("t.micro") * 8 + 3 < left, v("t.micro") * 8 + 5 < left}) {
        for (const Expr &question : {condition, !condition}) {
            Bounds few = facts;
            few.limit(3200);  // a comparison is tried both ways, each in at most 1,500 steps
            CHECK_FALSE(prove(question, few));
            CHECK(few.spend_step());
        }
        facts.assume(condition);
    }
}

}  // namespace tessera::test_prove

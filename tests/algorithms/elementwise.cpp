#include "algorithms/transform/elementwise.h"

#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "algorithms/verify/verify.h"
#include "tests/support/words.h"

namespace tessera::test_elementwise {

using namespace tessera::test;

namespace {

// y = gelu(x + b) and z = x * table[i], where b lacks a dim, a stage lies between, and a value of a tensor chooses from a table.
Algorithm several() {
    Builder f("several");
    const Dim m = f.dim("M"), n = f.dim("N");
    const Tile x = f.input("x", {m, n}), b = f.input("b", {n}), i = f.input("i", {m, n}, DType::u8);
    const Tile table = f.constant("table", {f.dim("rows", 3)}, {1, 10, 100});
    const Tile biased = (x + b).named("biased");
    const Expr at = bounded(cast(DType::index, i.value()), Expr(0), Expr(3));
    return f.output("y", gelu(biased)).output("z", x * table.at({{"rows", at}}, {"M", "N"})).build();
}

Array filled(DType type, std::vector<int64_t> extents, double first, double step) {
    std::vector<double> values(1);
    for (const int64_t n : extents) values.resize(values.size() * static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); i++) values[i] = first + step * static_cast<double>(i % 7);
    return Array(type, extents, values);
}

std::string refused(const std::function<void(Builder &, const Tile &x, const Tile &t)> &declare) {
    Builder f("wrong");
    const Dim m = f.dim("M"), n = f.dim("N");
    const Tile x = f.input("x", {m, n}), t = f.input("t", {n, m});
    declare(f, x, t);
    return words([&] { check_elementwise(f.build()); });
}

}  // namespace

TEST_CASE("an element-wise algorithm over rows is the one that was declared, whatever is repeated") {
    const Algorithm a = several();
    const Array x = filled(DType::f32, {3, 4}, -2, 0.75), b = filled(DType::f32, {4}, 0.5, 0.25), i = filled(DType::u8, {3, 4}, 0, 1);
    std::vector<double> rows_of_b;
    const std::vector<double> row_of_b = b.values();
    for (int row = 0; row < 3; row++) rows_of_b.insert(rows_of_b.end(), row_of_b.begin(), row_of_b.end());
    const auto wanted = evaluate(a, {{"x", x}, {"b", b}, {"i", i}});
    const Algorithm whole = elementwise_over_rows(a, {});
    verify(whole);
    const auto got = evaluate(whole, {{"x", x}, {"b", Array(DType::f32, {3, 4}, rows_of_b)}, {"i", i}});
    for (const char *name : {"y", "z"}) CHECK(got.at(name).values() == wanted.at(name).values());

    const Algorithm repeated = elementwise_over_rows(a, {"x", "i"});
    verify(repeated);
    const Array column = filled(DType::f32, {3, 1}, -2, 0.75), codes = filled(DType::u8, {3, 1}, 0, 1);
    const auto wide = evaluate(repeated, {{"x", column}, {"b", Array(DType::f32, {3, 4}, rows_of_b)}, {"i", codes}});
    const auto as_rows = [](const Array &c, DType type) {
        std::vector<double> all;
        for (const double v : c.values()) all.insert(all.end(), 4, v);
        return Array(type, {3, 4}, all);
    };
    const auto plain = evaluate(a, {{"x", as_rows(column, DType::f32)}, {"b", b}, {"i", as_rows(codes, DType::u8)}});
    for (const char *name : {"y", "z"}) CHECK(wide.at(name).values() == plain.at(name).values());
}

TEST_CASE("what is element-wise in the library keeps so over rows") {
    for (const Algorithm &a : {library::gelu({}), library::silu({})}) {
        check_elementwise(a);
        verify(elementwise_over_rows(a, {}));
        verify(elementwise_over_rows(a, {"x"}));
    }
    for (const Algorithm &a : {library::matmul({}), library::softmax({}), library::layernorm({})})
        CHECK_THROWS_WITH(check_elementwise(a), Catch::Contains("elementwise.stage"));
}

TEST_CASE("what is not element-wise is named") {
    const auto has = [](const std::string &words, const std::string &part) { CHECK_THAT(words, Catch::Contains(part)); };
    has(refused([](Builder &f, const Tile &x, const Tile &) { f.output("y", sum(x, f.dim_named("N"))); }),
        "error[elementwise.stage]: wrong.y: it folds over N. A function that is to be a ufunc is element-wise: each element of a result "
        "takes "
        "the elements of the inputs at its own position");
    has(refused([](Builder &f, const Tile &x, const Tile &) { f.output("y", f.scan(sum_monoid(DType::f32), x, f.dim_named("N"))); }),
        "it scans along N");
    has(refused([](Builder &f, const Tile &x, const Tile &t) { f.output("y", x + t); }),
        "error[elementwise.reading]: wrong.y: it reads t[N, M], and its own dims are [M, N]: expected t[M, N]");
    has(refused([](Builder &f, const Tile &x, const Tile &) { f.output("y", x + f.input("c", {f.dim_named("M")})); }),
        "it reads c[M], and its own dims are [M, N]: expected c[N]");
    has(refused([](Builder &f, const Tile &x, const Tile &) {
            f.output("y", x + f.input("q", {f.dim_named("M"), f.dim("T", 3)}).at({{"T", Expr(0)}}, {"M"}));
        }),
        "it reads q[M, 0]");
    has(refused([](Builder &f, const Tile &x, const Tile &) { f.output("y", x + cast(DType::f32, f.index(f.dim_named("N")))); }),
        "error[elementwise.position]: wrong.y: it uses the position along the dim N, which arrays of any shape do not have");
    has(refused([](Builder &f, const Tile &x, const Tile &) { f.output("y", x).output("z", f.input("c", {f.dim_named("N")}) * 2); }),
        "error[elementwise.result]: wrong.z: the result 'z' has the dims [N], and others have 2 dims");
    has(refused([](Builder &f, const Tile &x, const Tile &) {
            f.output("y", x + cast(DType::f32, f.input("q", {f.dim_named("N")}, DType::i4)));
        }),
        "error[elementwise.type]: wrong: 'q' is i4, and NumPy has no arrays of half bytes");
    has(words([] {
            Builder f("nothing");
            check_elementwise(f.output("y", f.scalar(DType::f32, 1)).build());
        }),
        "error[elementwise.result]: nothing: it has no input, whose shape its results would have");
    has(words([] {
            Builder f("kept");
            const Dim n = f.dim("N");
            f.update("write", f.state("s", {n}), {f.index(n)}, f.input("x", {n}));
            check_elementwise(f.build());
        }),
        "error[elementwise.state]: kept: it updates a state");
}

}  // namespace tessera::test_elementwise

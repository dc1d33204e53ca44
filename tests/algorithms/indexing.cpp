// Gathers, scatters, one-hot codes and Einstein's sums beside loops that say what they are.
#include "algorithms/build/indexing.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/monoid_laws.h"
#include "algorithms/evaluate/reference.h"
#include "support/text/error.h"

namespace tessera::test_indexing {

namespace {

using Arrays = std::map<std::string, Array>;
using Doubles = std::vector<double>;

Doubles results(Builder &f, const Tile &y, const Arrays &inputs, DType type = DType::f32) {
    return evaluate(f.output("y", y, type).build(), inputs).at("y").values();
}

template <typename Make>
std::string refused(Make make) {
    try {
        Builder f("refused");
        make(f);
    } catch (const UserError &e) { return e.id(); }
    return "";
}

// A dim of at least one element.
Dim some(Builder &f, const std::string &name) {
    Dim d = symbolic_dim(name);
    d.min = 1;
    return f.dim(d);
}

Doubles pseudo_random(size_t n, uint32_t seed, uint32_t most) {
    Doubles all;
    for (size_t i = 0; i < n; i++) all.push_back(static_cast<double>((seed = seed * 1664525 + 1013904223) >> 16 & 0xffffu) / 65536 * most);
    return all;
}

Doubles whole(Doubles values) {
    for (double &v : values) v = std::floor(v);
    return values;
}

}  // namespace

TEST_CASE("indexing: a gather reads rows, elements and points, from the end too, and never outside") {
    const size_t v = 5, d = 3, t = 4;
    const Doubles x = pseudo_random(v * d, 1, 100), ids = {4, -1, 0, 9}, elements = whole(pseudo_random(t * d, 2, v));
    const Arrays inputs = {{"x", Array(DType::f32, {5, 3}, x)},
                           {"ids", Array(DType::i64, {4}, ids)},
                           {"elements", Array(DType::i32, {4, 3}, elements)},
                           {"columns", Array(DType::i32, {4}, {2, 0, 1, 1})}};
    const size_t rows[] = {4, 4, 0, 4};
    {
        Builder f("rows");
        const Dim V = some(f, "V"), D = some(f, "D"), T = f.dim("T");
        const Tile y = gather(f.input("x", {V, D}), {{V, from_end(f.input("ids", {T}, DType::i64), V)}});
        CHECK(y.dims() == std::vector<std::string>{"T", "D"});
        const Doubles got = results(f, y, {{"x", inputs.at("x")}, {"ids", inputs.at("ids")}});
        for (size_t i = 0; i < t * d; i++) CHECK(got[i] == static_cast<double>(static_cast<float>(x[rows[i / d] * d + i % d])));
    }
    {
        Builder f("elements");
        const Dim V = some(f, "V"), D = some(f, "D"), T = f.dim("T");
        const Tile doubled = f.input("x", {V, D}) * 2.0;  // computed before
        const Tile y = gather(doubled, {{V, f.input("elements", {T, D}, DType::i32)}});
        const Doubles got = results(f, y, {{"x", inputs.at("x")}, {"elements", inputs.at("elements")}});
        for (size_t i = 0; i < t * d; i++)
            CHECK(got[i] == 2 * static_cast<double>(static_cast<float>(x[static_cast<size_t>(elements[i]) * d + i % d])));
        CHECK(f.algorithm().find_stage("gathered"));
    }
    {
        Builder f("points");
        const Dim V = some(f, "V"), D = some(f, "D"), T = f.dim("T");
        const Tile y = gather(f.input("x", {V, D}), {{V, f.input("ids", {T}, DType::i64)}, {D, f.input("columns", {T}, DType::i32)}});
        const Doubles got = results(f, y, {{"x", inputs.at("x")}, {"ids", inputs.at("ids")}, {"columns", inputs.at("columns")}});
        const size_t at[] = {4 * d + 2, 0 * d + 0, 0 * d + 1, 4 * d + 1};  // -1 is clamped to 0
        for (size_t i = 0; i < t; i++) CHECK(got[i] == static_cast<double>(static_cast<float>(x[at[i]])));
    }
    CHECK(refused([](Builder &f) {
              const Dim V = some(f, "V"), T = f.dim("T");
              gather(f.input("x", {V}), {{T, f.input("ids", {T}, DType::i32)}});
          }) == "shape.gather");
    CHECK(refused([](Builder &f) {
              const Dim V = some(f, "V"), T = f.dim("T");
              gather(f.input("x", {V}), {{V, f.input("ids", {T})}});
          }) == "shape.type");
}

TEST_CASE("indexing: one-hot codes of ids, nothing for those outside") {
    Builder f("hot");
    const Dim N = f.dim("N"), C = f.dim("C", 4);
    const Tile y = one_hot(f.input("id", {N}, DType::i32), C, f.scalar(DType::f32, 3), f.scalar(DType::f32, -1));
    CHECK(y.dims() == std::vector<std::string>{"N", "C"});
    const Doubles got = results(f, y, {{"id", Array(DType::i32, {3}, {2, -1, 4})}});
    for (size_t i = 0; i < 12; i++) CHECK(got[i] == (i == 2 ? 3 : -1));
}

TEST_CASE("indexing: a scatter combines what arrives at a position with what is there") {
    const size_t v = 4, d = 2, t = 7;
    const Doubles x = whole(pseudo_random(v * d, 3, 9)), g = whole(pseudo_random(t * d, 4, 9)), ids = {1, 3, 1, -2, 4, 3, 1};
    for (const char *name : {"sum", "product", "max", "min", "last"}) {
        Builder f("into");
        const Dim V = some(f, "V"), D = some(f, "D"), T = f.dim("T");
        const Tile data = f.input("x", {V, D}), updates = f.input("g", {T, D});
        const std::vector<Tile> at = {f.input("ids", {T}, DType::i32), f.index(D)};
        const std::string how = name;
        const DType type = DType::f32;
        const Tile y = how == "last"      ? replace_at(data, updates, at)
                       : how == "sum"     ? scatter_into(data, sum_monoid(type), updates, at)
                       : how == "product" ? scatter_into(data, product_monoid(type), updates, at)
                       : how == "max"     ? scatter_into(data, max_monoid(type), updates, at)
                                          : scatter_into(data, min_monoid(type), updates, at);
        const Algorithm a = f.output("y", y).build();
        CHECK_NOTHROW(check_monoid_laws(a));
        const Doubles got =
            evaluate(a, {{"x", Array(type, {4, 2}, x)}, {"g", Array(type, {7, 2}, g)}, {"ids", Array(DType::i32, {7}, ids)}})
                .at("y")
                .values();
        Doubles wanted = x;
        for (size_t i = 0; i < t * d; i++) {
            const double at_row = ids[i / d];
            if (at_row < 0 || at_row >= static_cast<double>(v)) continue;
            double &to = wanted[static_cast<size_t>(at_row) * d + i % d];
            to = how == "last"      ? g[i]
                 : how == "sum"     ? to + g[i]
                 : how == "product" ? to * g[i]
                 : how == "max"     ? std::max(to, g[i])
                                    : std::min(to, g[i]);
        }
        INFO(how);
        CHECK(got == wanted);
    }
    CHECK(refused([](Builder &f) {
              const Dim V = some(f, "V"), T = f.dim("T");
              scatter_into(f.input("x", {V}), sum_monoid(DType::i32), f.input("g", {T}, DType::i32), {f.input("ids", {T}, DType::i32)});
          }) == "shape.type");
    CHECK(refused([](Builder &f) {
              const Dim V = some(f, "V"), T = f.dim("T");
              replace_at(f.input("x", {V}), f.input("g", {T}), {f.input("ids", {T})});
          }) == "shape.type");
}

TEST_CASE("indexing: sums of products by the names of dims") {
    const size_t b = 2, i = 3, j = 4, k = 5;
    const Doubles x = whole(pseudo_random(b * i * j, 5, 9)), y = whole(pseudo_random(b * j * k, 6, 9)), z = whole(pseudo_random(k, 7, 9));
    Builder f("sums");
    const Dim B = f.dim("B"), I = f.dim("I"), J = f.dim("J"), K = f.dim("K");
    const Tile p = f.input("p", {B, I, J}), q = f.input("q", {B, J, K}), r = f.input("r", {K});
    f.output("product", einsum({p, q}, {B, I, K})).output("turned", einsum({p, q}, {K, I, B}));
    f.output("all", einsum({p, q, r}, {I})).output("sum", einsum({p}, {J})).output("outer", einsum({r, p}, {I, K}));
    const auto made = evaluate(
        f.build(), {{"p", Array(DType::f32, {2, 3, 4}, x)}, {"q", Array(DType::f32, {2, 4, 5}, y)}, {"r", Array(DType::f32, {5}, z)}});
    Doubles product(b * i * k), turned(b * i * k), all(i), sum(j), outer(i * k);
    for (size_t n = 0; n < b; n++)
        for (size_t m = 0; m < i; m++)
            for (size_t l = 0; l < j; l++) {
                sum[l] += x[(n * i + m) * j + l];
                for (size_t c = 0; c < k; c++) {
                    const double one = x[(n * i + m) * j + l] * y[(n * j + l) * k + c];
                    product[(n * i + m) * k + c] += one, turned[(c * i + m) * b + n] += one, all[m] += one * z[c];
                    outer[m * k + c] += x[(n * i + m) * j + l] * z[c];
                }
            }
    CHECK(made.at("product").values() == product);
    CHECK(made.at("turned").values() == turned);
    CHECK(made.at("all").values() == all);
    CHECK(made.at("sum").values() == sum);
    CHECK(made.at("outer").values() == outer);
    CHECK(refused([](Builder &) { einsum({}, {}); }) == "shape.einsum");
    CHECK(refused([](Builder &own) { einsum({own.input("x", {own.dim("N")})}, {own.dim("M")}); }) == "shape.einsum");
}

}  // namespace tessera::test_indexing

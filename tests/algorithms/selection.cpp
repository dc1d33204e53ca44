#include "algorithms/build/selection.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/monoid_laws.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"

namespace tessera::test_selection {

namespace {

const double inf = INFINITY;

// NaN above all, equals by position: what the standard library's stable sort does with it.
std::vector<size_t> upwards(const std::vector<double> &row) {
    std::vector<size_t> order(row.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return std::isnan(row[b]) ? !std::isnan(row[a]) : row[a] < row[b];  // false where a is NaN
    });
    return order;
}

std::vector<double> awkward(size_t n, uint32_t seed) {
    const std::vector<double> some = {0, -0.0, 1, -1, inf, -inf, NAN, 2.5, static_cast<double>(-3e38f), static_cast<double>(1e-45f)};
    std::vector<double> row(n);
    for (double &v : row) v = some[(seed = seed * 1664525 + 1013904223) >> 16 & 7u];
    if (n > 2) row[n / 2] = some[8], row[n - 1] = some[9];
    return row;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE("selection: keys are ordered as numbers are, and give them back") {
    for (DType type : {DType::f32, DType::f64}) {
        const std::vector<double> rising = {-inf, -3e38, -1, -1e-45, 0, 1e-45, 1, 3e38, inf, NAN};
        Builder f("keys", numerics_named(name_of(type)));
        const Dim N = f.dim("N");
        const Tile key = order_key(f.input("x", {N}));
        const Algorithm a = f.output("key", key, key.dtype()).output("y", from_order_key(key)).build();
        const auto results = evaluate(a, {{"x", Array(type, {10}, rising)}});
        const std::vector<double> keys = results.at("key").values(), back = results.at("y").values();
        CHECK(std::is_sorted(keys.begin(), keys.end()));
        for (size_t i = 0; i < rising.size(); i++) CHECK(same(back[i], Array(type, {1}, {rising[i]}).values()[0]));
    }
}

TEST_CASE("selection: the largest, downwards, the first of equals before the others") {
    for (int k : {1, 2, 3, 5, 8})
        for (size_t n : {8u, 13u, 40u}) {
            const std::vector<double> row = awkward(n, static_cast<uint32_t>(n) + static_cast<uint32_t>(k));
            const Algorithm a = library::top_k({}, {{"k", k}});
            CHECK_NOTHROW(check_monoid_laws(a));
            const auto results = evaluate(a, {{"x", Array(DType::f32, {1, static_cast<int64_t>(n)}, row)}});
            std::vector<size_t> order(n);
            std::iota(order.begin(), order.end(), size_t{0});
            std::stable_sort(order.begin(), order.end(),
                             [&](size_t i, size_t j) { return std::isnan(row[i]) ? !std::isnan(row[j]) : row[i] > row[j]; });
            for (size_t i = 0; i < static_cast<size_t>(k); i++) {
                CHECK(results.at("at").values()[i] == static_cast<double>(order[i]));
                CHECK(same(results.at("y").values()[i], row[order[i]]));
            }
        }
}

TEST_CASE("selection: the smallest and the largest of integers and floats, downwards sorts") {
    const std::vector<double> row = {3, -7, 3, 0, 9, -7, 2, 9};
    for (const DType type : {DType::f32, DType::i32, DType::i64}) {
        Builder f("ranked");
        const Dim N = f.dim("N", 8), K = f.dim("K", 3);
        const Tile x = f.input("x", {N}, type);
        std::vector<Tile> low, high;
        for (const Ranked &r : smallest(x, N, 3)) low.push_back(r.at);
        for (const Ranked &r : largest(x, N, 3)) high.push_back(r.at);
        f.output("low", stack(low, K)).output("high", stack(high, K)).output("down", sorted(x, N, Order::downwards).at);
        const auto made = evaluate(f.build(), {{"x", Array(type, {8}, row)}});
        CHECK(made.at("low").values() == std::vector<double>{1, 5, 3});
        CHECK(made.at("high").values() == std::vector<double>{4, 7, 0});
        CHECK(made.at("down").values() == std::vector<double>{4, 7, 0, 2, 6, 3, 1, 5});
    }
}

TEST_CASE("selection: sorted upwards for any length, stable") {
    for (int64_t n : {1, 2, 3, 7, 8, 29}) {
        const std::vector<double> row = awkward(static_cast<size_t>(n), static_cast<uint32_t>(n));
        const auto results = evaluate(library::sort({}, {{"length", n}}), {{"x", Array(DType::f32, {1, n}, row)}});
        const std::vector<size_t> order = upwards(row);
        for (size_t i = 0; i < order.size(); i++) {
            CHECK(results.at("at").values()[i] == static_cast<double>(order[i]));
            CHECK(same(results.at("y").values()[i], row[order[i]]));
        }
    }
}

TEST_CASE("selection: only a fixed dim is sorted") {
    Builder f("f");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N});
    try {
        sorted(x, N);
        FAIL("nothing was refused");
    } catch (const UserError &e) {
        CHECK_THAT(e.what(), Catch::Contains("error[shape.sorted]") && Catch::Contains("'N' is not") &&
                                 Catch::Contains("declare it as dim(\"N\", 64)"));
    }
}

}  // namespace tessera::test_selection

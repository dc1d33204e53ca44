#include "bench/measure/work.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"

namespace tessera::test_work {

static Work work(const Algorithm &algorithm, const Extents &symbolic) {
    return work_of(algorithm, lower(algorithm, {}, target_named("x86-64")), all_extents(algorithm, symbolic));
}

TEST_CASE("an fma counts two operations, and arguments are moved once") {
    const Work matmul = work(library::matmul({}), {{"M", 2}, {"N", 3}, {"K", 5}});
    CHECK(matmul.operations == 2.0 * 2 * 3 * 5);
    CHECK(matmul.bytes == 4.0 * (2 * 5 + 5 * 3 + 2 * 3));
    CHECK(work(library::cumulative_sum(numerics_named("f64")), {{"M", 2}, {"N", 3}}).operations == 6.0);
    CHECK(work(library::cumulative_sum(numerics_named("f64")), {{"M", 2}, {"N", 3}}).bytes == 8.0 * 12);
}

TEST_CASE("operations with a peak of their own are told apart") {
    const Extents shape = {{"M", 2}, {"N", 3}, {"K", 5}};
    const auto of = [&](const Algorithm &a) {
        const Work w = work(a, shape);
        const auto by = [&](const char *family) { return w.by_family.count(family) ? w.by_family.at(family) : 0.0; };
        return std::vector<double>{w.f64, by("dot2"), by("dot4")};
    };
    CHECK(of(library::matmul({})) == std::vector<double>{0, 0, 0});
    CHECK(of(library::matmul(numerics_named("f64"))) == std::vector<double>{60, 0, 0});
    CHECK(of(library::matmul(numerics_named("bf16"))) == std::vector<double>{0, 60, 0});
    CHECK(of(library::matmul_u8s8({})) == std::vector<double>{0, 0, 60});
    CHECK(of(library::matmul_s8s8({}))[2] >= 60);
}

// What one value of a function over f32 costs.
static double cost(const std::function<Tile(const Tile &)> &function) {
    Builder f("cost", {});
    return *work(f.output("y", function(f.input("x", {f.dim("M")}))).build(), {{"M", 1}}).operations;
}

TEST_CASE("what is invariant or shared counts once") {
    Builder f("shared", {});
    Dim M = f.dim("M"), N = f.dim("N");
    Tile x = f.input("x", {M}), y = f.input("y", {N});
    const Tile e = exp(x);  // (M)
    CHECK(work(f.output("z", (e + y) * e).build(), {{"M", 10}, {"N", 1000}}).operations ==
          10 * cost([](const Tile &t) { return exp(t); }) + 2.0 * 10 * 1000);
}

TEST_CASE("softmax is an exponential and some four operations for each element") {
    const double each = *work(library::softmax({}), {{"M", 3}, {"N", 100}}).operations / 300;
    CHECK(each > 12);
    CHECK(each < cost([](const Tile &t) { return exp(t); }) + 6);
}

TEST_CASE("attention is 4 H S T D and an exponential for each score, not for each element of the values") {
    const double H = 2, S = 5, T = 7, D = 64, exponential = cost([](const Tile &t) { return exp(t); });
    for (auto attention : {library::attention, library::attention_causal}) {
        const double got = *work(attention({}), {{"H", 2}, {"S", 5}, {"T", 7}, {"D", 64}, {"E", 64}}).operations;
        const double products = 4 * H * S * T * D;
        CHECK(got >= products + H * S * T * exponential);
        CHECK(got <= products + H * S * T * (exponential + 8) + H * S * D * 2 + 100);
    }
}

TEST_CASE("layernorm is some fifteen operations for each element, its root and division one for each row") {
    const double one = *work(library::layernorm({}), {{"M", 1}, {"N", 1000}}).operations,
                 row = *work(library::layernorm({}), {{"M", 1}, {"N", 1}}).operations;
    CHECK(one - row == 999.0 * 15);
    CHECK(row > 16.0);
}

TEST_CASE("a state is read and written") {
    CHECK(work(library::ring_append({}), {{"B", 1}, {"W", 10}, {"T", 2}, {"D", 4}}).bytes == 4.0 * (2 * 40 + 8));
}

TEST_CASE("operations are not counted where data decides how many there are") {
    const Work sums = work(library::segmented_sum({}), {{"B", 2}, {"T", 5}, {"N", 3}});
    CHECK(!sums.operations);
    CHECK(sums.bytes == 4.0 * 15 + 8.0 * 3 + 4.0 * 6);
}

}  // namespace tessera::test_work

#include "costmodel/features/limiters.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"

namespace tessera::test_limiters {

static std::vector<PartOfProgram> parts(const Algorithm &a, const KnobsByStage &stages, int threads = 1) {
    const Target target = target_named("avx512");
    return parts_of(lower(a, stages, target), {}, target, threads);
}

static bool has(const std::vector<PartOfProgram> &all, const std::string &id) {
    return std::any_of(all.begin(), all.end(), [&](const PartOfProgram &part) {
        return std::any_of(part.limiters.begin(), part.limiters.end(), [&](const Limiter &l) { return l.id == id; });
    });
}

static std::string text_of(const std::vector<PartOfProgram> &all, const std::string &id) {
    for (const PartOfProgram &part : all)
        for (const Limiter &l : part.limiters)
            if (l.id == id) return l.text;
    return "";
}

static const Algorithm product = bind_extents(library::matmul({}), {{"M", 64}, {"N", 96}, {"K", 128}});

// y[M, N] of x[M, N] by an expression.
template <typename F>
static Algorithm map_of(int64_t M, int64_t N, F f) {
    Builder b("map");
    const Dim m = b.dim("M"), n = b.dim("N");
    const Tile x = b.input("x", {m, n});
    return bind_extents(b.output("y", f(x)).build(), {{"M", M}, {"N", N}});
}

static Knobs lanes(const std::string &dim, std::vector<std::string> parallel = {}) {
    Knobs k;
    k.micro = {{dim, 16}}, k.vector = {{dim, 16}}, k.parallel = std::move(parallel);
    return k;
}

TEST_CASE("a good schedule of a product has nothing to say of its lanes and sums") {
    Knobs k;
    k.micro = {{"M", 8}, {"N", 48}}, k.vector = {{"N", 16}};
    const auto all = parts(product, {{"y", k}});
    for (const char *id : {"no-lanes", "apart", "chain", "registers", "divisions", "functions", "branches", "waste"}) {
        INFO(id);
        CHECK_FALSE(has(all, id));
    }
}

TEST_CASE("shares are of all parts, and the slowest comes first") {
    const auto all = parts(product, {{"y", lanes("N")}});
    double sum = 0;
    for (size_t i = 0; i < all.size(); i++) {
        sum += all[i].share;
        if (i > 0) CHECK(all[i].seconds <= all[i - 1].seconds);
        CHECK_FALSE(all[i].stores.empty());
    }
    CHECK(sum == Approx(1));
}

TEST_CASE("what makes code slow is found, and only where it is") {
    const auto plain = parts(product, {});
    CHECK(has(plain, "no-lanes"));
    const auto one = parts(product, {{"y", lanes("N")}});
    CHECK_FALSE(has(one, "no-lanes"));
    CHECK(has(one, "chain"));
    Knobs strided = lanes("M");
    const auto apart = parts(product, {{"y", strided}});
    CHECK(has(apart, "apart"));
    CHECK(text_of(apart, "apart").find("x[") != std::string::npos);
    Knobs large;
    large.micro = {{"M", 16}, {"N", 96}}, large.vector = {{"N", 16}};
    CHECK(has(parts(product, {{"y", large}}), "registers"));

    const auto simple = [](const Tile &x) { return x + 1.0; };
    const auto quotient = map_of(64, 64, [](const Tile &x) { return 1.0 / x; });
    CHECK(has(parts(quotient, {{"y", lanes("N")}}), "divisions"));
    CHECK_FALSE(has(parts(map_of(64, 64, simple), {{"y", lanes("N")}}), "divisions"));
    CHECK(has(parts(map_of(4096, 4096, simple), {{"y", lanes("N")}}), "memory"));
    CHECK_FALSE(has(parts(map_of(8, 64, simple), {{"y", lanes("N")}}), "memory"));

    CHECK(has(parts(map_of(64, 64, simple), {{"y", lanes("N")}}, 2), "one-thread"));
    CHECK_FALSE(has(parts(map_of(64, 64, simple), {{"y", lanes("N", {"M"})}}, 2), "one-thread"));
    CHECK(has(parts(map_of(3, 4096, simple), {{"y", lanes("N", {"M"})}}, 2), "imbalance"));
    CHECK_FALSE(has(parts(map_of(64, 64, simple), {{"y", lanes("N")}}), "one-thread"));
}

}  // namespace tessera::test_limiters

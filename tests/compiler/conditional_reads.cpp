#include <catch2/catch.hpp>

#include "compiler/tile/conditional_reads.h"

namespace tessera::test_conditional_reads {

namespace tessera {

static std::string text(const Expr &e) {
    std::string all;
    for (const ConditionalRead &r : conditional_reads({e}, [](const std::string &b) { return b != "x"; }))
        all += (all.empty() ? "" : "; ") + r.buffer + "[" + to_string(r.index[0]) + "]" +
               (r.condition.defined() ? " if " + to_string(r.condition) : "");
    return all;
}

TEST_CASE("an expression depends on what it loads, when it takes it") {
    Expr i = variable("i"), b = load("b", DType::f32, {i}), c = load("c", DType::f32, {i}), x = load("x", DType::f32, {i});
    CHECK(text(b + x) == "b[i]");
    CHECK(text(select(i < Expr(3), b, c)) == "b[i] if i < 3; c[i] if not(i < 3)");
    CHECK(text(select(i < Expr(3), b, c) + b) == "b[i]; c[i] if not(i < 3)");
    CHECK(text(select(i < Expr(3), b, c) + select(i < Expr(9), c, x)) == "b[i] if i < 3; c[i] if (i < 9) | not(i < 3)");
    CHECK(text(load_or("b", DType::f32, {i}, i < Expr(3), c)) == "c[i] if not(i < 3); b[i] if i < 3");
    Expr position = cast(DType::index, load("p", DType::i32, {i}));
    CHECK(text(load_or("b", DType::f32, {position}, i < Expr(3), constant(DType::f32, 0))) ==
          "p[i] if i < 3; b[index(load_or(p[i], i < 3, 0:i32))] if i < 3");
}

}  // namespace tessera

}  // namespace tessera::test_conditional_reads

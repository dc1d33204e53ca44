#include "compiler/rewrite/choice.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"

namespace tessera::test_choice {

static Choice chosen(const std::function<Tile(const Tile &)> &value, const std::string &dim = "N") {
    Builder f("chosen");
    Tile x = f.input("x", {f.dim("M"), f.dim("N", 24)});
    const Algorithm a = f.output("y", value(x)).build();
    return choice_of(a.stages().back(), dim);
}

TEST_CASE("what a value chooses by: the index, its remainder, its run") {
    const Expr n = variable("N");
    auto where = [](const Expr &condition) {
        return [condition](const Tile &x) { return select(Tile(&x.builder(), condition, {"N"}), x, x + 1.0); };
    };
    CHECK_FALSE(chosen([](const Tile &x) { return x + 1.0; }).by_index);
    CHECK(chosen(where(n == Expr(3))).by_index);
    CHECK(chosen(where(n % Expr(2) == Expr(0))).remainders == 2);
    CHECK(chosen(where(n / Expr(8) == Expr(1))).run == 8);
    CHECK(chosen(where(Expr(1) == n / Expr(2) / Expr(4))).run == 8);
    CHECK(chosen(where(n % Expr(2) == Expr(0) && n / Expr(8) == Expr(1))).run == 0);
    const Choice two = chosen([&](const Tile &x) { return where(n / Expr(8) == Expr(1))(where(n / Expr(12) == Expr(1))(x)); });
    CHECK((two.by_index && two.run == 0));
    // By another dim as well, or by data, is no choice that a loop over the dim decides.
    CHECK_FALSE(chosen(where(n == variable("M"))).by_index);
    CHECK_FALSE(chosen([](const Tile &x) { return select(x < x + 1.0, x, x + 1.0); }).by_index);
    CHECK_FALSE(chosen(where(n == Expr(3)), "M").by_index);
}

}  // namespace tessera::test_choice

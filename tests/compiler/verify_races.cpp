#include <catch2/catch.hpp>

#include "compiler/verify_races.h"

namespace tessera {

// Whether iterations of i < |N| that store to `index` are apart; j runs over `inner` inside.
static bool apart(const std::vector<Expr> &index, const Expr &inner, const Expr &where = {}) {
    auto i_scope = std::make_shared<TileScope>(TileScope{nullptr, "i", Expr(0), extent("N") - 1, extent("N"), {}});
    Scope scope = std::make_shared<TileScope>(TileScope{i_scope, "j", Expr(0), inner - 1, inner, {}});
    if (where.defined()) scope = std::make_shared<TileScope>(TileScope{scope, "", {}, {}, {}, where});
    TileAccess access{"b", index, true, scope};
    return !find_conflict(Bounds(std::vector<Dim>{symbolic_dim("N")}), i_scope, {"i"}, {&access});
}

TEST_CASE("iterations are apart where one axis tells them apart") {
    Expr i = variable("i"), j = variable("j");
    CHECK(apart({i}, 4));
    CHECK(apart({j, i}, 4));
    CHECK(apart({i * 4 + j}, 4));
    CHECK_FALSE(apart({i * 4 + j}, 5));
    CHECK(apart({i * 4 + j}, 5, j < Expr(4)));
    CHECK_FALSE(apart({j}, 4));
    CHECK_FALSE(apart({i / 2}, 4));
    CHECK(apart({i / 4, i % 4}, 1));
    CHECK_FALSE(apart({i / 4, j % 4}, 8));
    CHECK_FALSE(apart({min(i, Expr(3))}, 1));
}

TEST_CASE("threads that step over one another are apart") {
    Expr j = variable("j");
    auto t = std::make_shared<TileScope>(TileScope{nullptr, "t", Expr(0), Expr(7), Expr(8), {}});
    Scope scope = std::make_shared<TileScope>(TileScope{t, "j", Expr(0), extent("N") - 1, extent("N"), {}});
    auto meets = [&](const Expr &index) {
        TileAccess access{"b", {index}, true, scope};
        return find_conflict(Bounds(std::vector<Dim>{symbolic_dim("N")}), t, {"t"}, {&access}).has_value();
    };
    CHECK_FALSE(meets(j * 8 + variable("t")));
    CHECK_FALSE(meets(j * 32 + variable("t") * 4 + 3));
    CHECK(meets(j * 7 + variable("t")));
    CHECK(meets(j + variable("t")));
}

}  // namespace tessera

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "compiler/check/verify_races.h"
#include "compiler/check/verify_tiles.h"
#include "compiler/lower/lower.h"
#include "support/text/error.h"

namespace tessera::test_verify_races {

namespace tessera {

// Whether iterations of i < |N| that store to `index` are apart; j runs over `inner` inside.
static bool apart(const std::vector<Expr> &index, const Expr &inner, const Expr &where = {}) {
    auto i_scope = std::make_shared<TileScope>(TileScope{nullptr, "i", Expr(0), extent("N") - 1, extent("N"), {}});
    EnclosingScope scope = std::make_shared<TileScope>(TileScope{i_scope, "j", Expr(0), inner - 1, inner, {}});
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
    EnclosingScope scope = std::make_shared<TileScope>(TileScope{t, "j", Expr(0), extent("N") - 1, extent("N"), {}});
    auto meets = [&](const Expr &index) {
        TileAccess access{"b", {index}, true, scope};
        return find_conflict(Bounds(std::vector<Dim>{symbolic_dim("N")}), t, {"t"}, {&access}).has_value();
    };
    CHECK_FALSE(meets(j * 8 + variable("t")));
    CHECK_FALSE(meets(j * 32 + variable("t") * 4 + 3));
    CHECK(meets(j * 7 + variable("t")));
    CHECK(meets(j + variable("t")));
}

// Tiles of every size inside parallel ones of every size, none of which divides another, with every tail, and slices of the fold.
TEST_CASE("tiles that divide neither the dim nor one another are apart") {
    const Algorithm matmul = library::matmul({});
    std::vector<std::string> unproved;
    for (int64_t block : {6, 20})
        for (int64_t tile : {0, 7, 12})
            for (int64_t micro : {0, 4, 16})
                for (int64_t lanes : {0, 8})
                    for (Tail tail : {Tail::mask, Tail::loop, Tail::narrow})
                        for (int64_t k : {0, 5}) {
                            if (micro % std::max<int64_t>(lanes, 1)) continue;
                            Knobs y;
                            y.block = {{"N", block}, {"M", 10}}, y.loops = {"block.N", "block.M"}, y.parallel = {"block"};
                            if (k) y.k = {{"K", k}}, y.loops.push_back("k.K");
                            if (tile) y.levels["tile"] = {{"N", tile}, {"M", 3}}, y.loops.insert(y.loops.end(), {"tile.N", "tile.M"});
                            if (micro) y.micro = {{"N", micro}, {"M", 4}}, y.loops.insert(y.loops.end(), {"micro.N", "micro.M"});
                            if (lanes) y.vector = {{"N", lanes}};
                            if (micro || lanes) y.tail = {{"N", tail}};
                            try {
                                const TileProgram program = lower(matmul, {{"y", y}}, target_named("avx2"));
                                for (const std::string &note : verify(program)) unproved.push_back(note);
                            } catch (const UserError &error) {
                                unproved.push_back(std::to_string(block) + " " + std::to_string(tile) + " " + std::to_string(micro) + " " +
                                                   std::to_string(lanes) + " " + std::to_string(k) + " " + name_of(tail) + ": " +
                                                   error.what());
                            }
                        }
    CHECK(unproved == std::vector<std::string>{});
}

}  // namespace tessera

}  // namespace tessera::test_verify_races

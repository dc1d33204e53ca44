#include "compiler/tile/tile_identity.h"

#include <catch2/catch.hpp>

#include "algorithms/library/library.h"
#include "compiler/lower/lower.h"

namespace tessera::test_tile_identity {

static TileBody body_of(const Expr &value, LoopKind kind = LoopKind::serial) {
    return {tile_node(Loop{"i", Expr(4), kind, {tile_node(Compute{"y", {variable("i")}, value, Expr()})}})};
}

TEST_CASE("bodies are equal where their texts are") {
    const Expr x = load("x", DType::f32, {variable("i")});
    const std::vector<TileBody> all = {body_of(x),
                                       body_of(x),
                                       body_of(x + x),
                                       body_of(x, LoopKind::unrolled),
                                       body_of(load("x", DType::f32, {variable("i") + Expr(1)})),
                                       {tile_node(Alloc{{"y", DType::f32, {Expr(4)}, Space::stack}, body_of(x)})},
                                       {tile_node(Alloc{{"y", DType::f32, {Expr(4)}, Space::workspace}, body_of(x)})},
                                       {tile_node(Guard{variable("n") < Expr(3), body_of(x), {}})},
                                       {tile_node(Guard{variable("n") < Expr(3), {}, body_of(x)})},
                                       {tile_node(Let{"n", Expr(2), body_of(x)})},
                                       {tile_node(Copy{"y", {Expr(0)}, x, Expr()})},
                                       {tile_node(Compute{"y", {Expr(0)}, x, Expr()})},
                                       {tile_node(Compute{"y", {Expr(0)}, x, variable("n") < Expr(3)})},
                                       {tile_node(Barrier{})},
                                       {}};
    for (const TileBody &a : all)
        for (const TileBody &b : all) {
            CHECK(equal(a, b) == (to_text(a) == to_text(b)));
            TileProgram p, q;
            p.body = a, q.body = b;
            CHECK((identity_of(p) == identity_of(q)) == (resolved_hash(p) == resolved_hash(q)));
        }
}

TEST_CASE("programs of one hash have one identity, whatever they are called") {
    const Algorithm algorithm = library::softmax(numerics_named("f32"));
    std::vector<TileProgram> all;
    for (const char *target : {"avx2", "avx512"})
        for (int64_t rows : {8, 16})
            for (int64_t lanes : {0, 8}) {
                KnobsByStage stages;
                if (lanes) stages[algorithm.stages().back().name].vector = {{"N", lanes}};
                all.push_back(lower(bind_extents(algorithm, {{"M", rows}, {"N", 64}}), stages, target_named(target)));
                all.push_back(all.back());
                all.back().name = "other";
            }
    for (const TileProgram &p : all)
        for (const TileProgram &q : all) CHECK((identity_of(p) == identity_of(q)) == (resolved_hash(p) == resolved_hash(q)));
}

}  // namespace tessera::test_tile_identity

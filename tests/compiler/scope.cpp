#include "compiler/lower/context/scope.h"

#include <catch2/catch.hpp>

#include "algorithms/index/prove.h"

namespace tessera::test_scope {

TEST_CASE("scope: what a copy adds is not known outside it") {
    Scope outer({symbolic_dim("N")}, {});
    Stored x;
    x.buffer = {"x", DType::f32, {extent("N")}, Space::argument}, x.origin = {Expr(0)}, x.dims = {"N"};
    outer.store("x", x);
    Scope inner = outer;
    inner.open_loop("y.N", "n");
    inner.facts.set("n", Expr(0), Expr(3));
    x.buffer.name = "x.tile", x.origin = {variable("n")};
    inner.store("x", x), inner.store("z", x);
    CHECK(inner.at("x").buffer.name == "x.tile");
    CHECK(inner.open_loops->variable == "n");
    CHECK(prove(variable("n") < Expr(4), inner.facts));
    CHECK(outer.at("x").buffer.name == "x");
    CHECK(!outer.find("z"));
    CHECK(!outer.open_loops);
    CHECK(!prove(variable("n") < Expr(4), outer.facts));
}

TEST_CASE("scope: an element's position is counted from the buffer's origin, along its layout") {
    const Bounds facts;
    Stored tile;
    tile.origin = {Expr(8)}, tile.dims = {"N"};
    CHECK(equal(locate(tile, {variable("n")}, facts)[0], simplify(variable("n") - 8, facts)));
    tile.layout = {{"N", 4, false}, {"N", 4, true}};
    const std::vector<Expr> axes = locate(tile, {Expr(14)}, facts);
    CHECK((axes.size() == 2 && axes[0].is_constant(1) && axes[1].is_constant(2)));
}

}  // namespace tessera::test_scope

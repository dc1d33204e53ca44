#include "schedules/knobs/pieces.h"

#include <catch2/catch.hpp>

namespace tessera::test_pieces {

namespace {

// s[M, N.o2] and t[M, N.o], of whose pieces y folds t's; z scans along the dim of a call's scope, which is no piece.
Algorithm pieces() {
    Algorithm a;
    for (const char *name : {"M", "N", "N.o", "N.i", "N.o2", "N.i2", "N.i2.o", "layer.o2"}) a.dims.push_back(symbolic_dim(name));
    const Monoid sum = sum_monoid(DType::f32);
    const Expr x = constant(DType::f32, 1);
    a.steps.push_back(Stage{"s", {"M", "N.o2"}, Reduce{sum, {"N.i2"}, {x}, {}, {}}});
    a.steps.push_back(Stage{"t", {"M", "N.o"}, Reduce{sum, {"N.i"}, {x}, {}, {}}});
    a.steps.push_back(Stage{"y", {"M"}, Reduce{sum, {"N.o2"}, {load("s", DType::f32, {variable("M"), variable("N.o2")})}, {}, {}}});
    a.steps.push_back(Stage{"z", {"M", "layer.o2"}, Map{x}});
    return a;
}

}  // namespace

TEST_CASE("the pieces of a dim, and those of another size") {
    CHECK(piece_names("K", 1).outer == "K.o");
    CHECK(piece_names("K", 2).outer == "K.o2");
    CHECK(piece_names("K.i", 3).inner == "K.i.i3");
}

TEST_CASE("of the dims of a stage one is what a schedule calls by a name") {
    const Algorithm a = pieces();
    CHECK(dim_called("N.o", {"M", "N.o2"}, a) == "N.o2");
    CHECK(dim_called("N.i.o", {"M", "N.i2.o"}, a) == "N.i2.o");
    CHECK(dim_called("N.o", {"M", "N.o"}, a) == "N.o");
    CHECK(dim_called("N.i", {"M", "N.o"}, a) == "N.i");
    CHECK(dim_called("layer.o", {"M", "layer.o2"}, a) == "layer.o");
}

TEST_CASE("addresses are checked against plain names") {
    const Algorithm a = as_addressed(pieces());
    CHECK(a.find_stage("s")->dims == std::vector<std::string>{"M", "N.o"});
    CHECK(reduced_dims(*a.find_stage("s")) == std::vector<std::string>{"N.i"});
    CHECK(a.find_stage("z")->dims == std::vector<std::string>{"M", "layer.o2"});
}

TEST_CASE("every address of a stage means its own pieces, behind another stage's or operand's name that one's") {
    KnobsByStage stages;
    Knobs &k = stages["s"];
    k.block = {{"N.o", 4}}, k.k = {{"N.i", 2}}, k.levels["tile"] = {{"N.o", 2}}, k.tail = {{"N.o", Tail::mask}};
    k.loops = {"block.N.o", "tile.N.o", "k.N.i", "N.o"}, k.parallel = {"block"};
    k.layout = {{"N.o", 0, false}, {"M", 0, false}};
    k.place = Place{Place::Kind::at, "y", "N.o"};
    k.directives = {{"u", "", "unroll", "N.i", 2}};
    Knobs &t = stages["t"];
    t.block = {{"N.o", 4}}, t.prefetch["s"] = {"y", "N.o", 1};
    stages["y"].pack["s"] = {"N.o", {{"N.o", 4, false}, {"M", 0, false}, {"N.o", 4, true}}};
    stages["y.s.packed"].vector = {{"N.o", 4}};
    const KnobsByStage named = with_dims_of(pieces(), stages);
    const Knobs &s = named.at("s");
    CHECK(s.block == Extents{{"N.o2", 4}});
    CHECK(s.k == Extents{{"N.i2", 2}});
    CHECK(s.levels.at("tile") == Extents{{"N.o2", 2}});
    CHECK(s.tail.count("N.o2") == 1);
    CHECK(s.loops == std::vector<std::string>{"block.N.o2", "tile.N.o2", "k.N.i2", "N.o2"});
    CHECK(s.parallel == std::vector<std::string>{"block"});
    CHECK(s.layout[0].dim == "N.o2");
    CHECK(s.place == Place{Place::Kind::at, "y", "N.o2"});
    CHECK(s.directives[0].loop == "N.i2");
    CHECK(named.at("t").block == Extents{{"N.o", 4}});
    CHECK(named.at("t").prefetch.at("s").loop == "N.o2");
    CHECK(named.at("y").pack.at("s").at == "N.o2");
    CHECK(named.at("y").pack.at("s").layout[2].dim == "N.o2");
    CHECK(named.at("y.s.packed").vector == Extents{{"N.o2", 4}});
}

}  // namespace tessera::test_pieces

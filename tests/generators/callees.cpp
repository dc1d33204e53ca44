#include "generators/choose/callees.h"

#include <algorithm>
#include <stdexcept>

#include "algorithms/build/tile_functions.h"
#include "tests/generators/harness.h"
#include "tests/generators/programs.h"

namespace tessera::test_callees {

using namespace tessera::test;

namespace {

const CalledKernel &called(const Callees &callees, const std::string &scope) {
    for (const CalledKernel &c : callees.all)
        if (std::find(c.scopes.begin(), c.scopes.end(), scope) != c.scopes.end()) return c;
    throw std::runtime_error("no call " + scope);
}

}  // namespace

TEST_CASE("the callees of a program, once each, with their extents and how often they run") {
    const Callees callees = callees_of(layered_program(), {{"L", 3}, {"D", 8}}, {{"M", 5}});
    // A layer, "up" and "down" of one algorithm at two shapes, and the norm, which the program calls too.
    REQUIRE(callees.all.size() == 4);
    CHECK(callees.uncounted.empty());
    const CalledKernel &layer = called(callees, "layers");
    CHECK(!layer.is_leaf());
    CHECK(layer.runs == 3);
    CHECK(layer.scopes == std::vector<std::string>{"layers"});
    const CalledKernel &up = called(callees, "layers.up"), &down = called(callees, "layers.down");
    CHECK(up.algorithm->name == "product");
    CHECK(down.algorithm->name == "product");
    CHECK(up.fixed == Extents{{"K", 8}});
    CHECK(up.dynamic == Extents{{"M", 5}, {"N", 16}});  // F is derived of D, and nobody fixes it
    CHECK(down.fixed == Extents{{"N", 8}});
    CHECK(down.dynamic == Extents{{"K", 16}, {"M", 5}});
    CHECK(up.runs == 3);
    CHECK(down.runs == 3);
    const CalledKernel &norm = called(callees, "layers.norm");
    CHECK(norm.scopes == std::vector<std::string>{"layers.norm", "last"});
    CHECK(norm.runs == 4);
    CHECK(norm.extents == Extents{{"M", 5}, {"N", 8}, {"H", 2}, {"W", 10}});  // with fixed and derived ones
    CHECK(!norm.may_end_early);
    std::vector<std::string> leaves;
    for (const CalledKernel &c : callees.leaves()) leaves.push_back(c.scopes.front());
    CHECK(leaves == std::vector<std::string>{"layers.up", "layers.down", "layers.norm"});
}

TEST_CASE("callees of rounds that are none, that may be fewer, and that data counts") {
    const Callees none = callees_of(layered_program(), {}, {{"L", 0}, {"D", 8}, {"M", 5}});
    CHECK(called(none, "layers.up").runs == 0);
    REQUIRE(none.leaves().size() == 1);
    CHECK(none.leaves()[0].scopes == std::vector<std::string>{"layers.norm", "last"});
    CHECK(none.leaves()[0].runs == 1);
    Builder g("halve");
    const Dim N = g.dim("N");
    const Tile x = g.input("x", {N});
    const Algorithm halve = g.output("y", x * 0.5).output("small", max(x, N) < 1.0, DType::boolean).build();
    Builder h("half");
    const Tile u = h.input("x", {h.dim("N")});
    const Algorithm half = h.output("y", u * 0.5).build();
    Builder f("search");
    Dim at_least_one = symbolic_dim("R");
    at_least_one.min = 1;
    const Dim V = f.dim("N"), R = f.dim(at_least_one);
    const Dim C = f.dim(counted_dim("C", f.input("count", {}, DType::i32).value(), extent("R")));
    const Tile begin = f.input("x", {V});
    const Tile some = f.repeat("some", halve, {.dim = "R", .carried = {{"x", "y"}}, .until = "small"}, {begin})[0];
    const Tile counted = f.repeat("counted", half, {.dim = "C", .carried = {{"x", "y"}}}, {some})[0];
    const Callees callees = callees_of(f.output("z", counted).build(), {}, {{"N", 4}, {"R", 7}});
    REQUIRE(callees.all.size() == 1);
    CHECK(callees.all[0].runs == 7);
    CHECK(callees.all[0].may_end_early);
    REQUIRE(callees.uncounted.size() == 1);
    CHECK(callees.uncounted[0].scope == "counted");
    CHECK(callees.uncounted[0].callee == "half");
    CHECK(callees.uncounted[0].dim == C.name);
}

TEST_CASE("an algorithm that calls nothing has no callees, and extents are needed") {
    CHECK(callees_of(sample_registry().make("matmul", {}), {}, {{"M", 1}, {"N", 2}, {"K", 3}}).all.empty());
    CHECK_THROWS_WITH(callees_of(layered_program(), {}, {{"L", 1}, {"D", 8}}), Catch::Contains("dim M has no extent"));
}

}  // namespace tessera::test_callees

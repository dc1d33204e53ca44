#include <catch2/catch.hpp>

#include "compiler/tile_program.h"

namespace tessera {

static TileProgram sample() {
    Expr i = variable("i"), N = extent("N");
    TileProgram p;
    p.name = "sample";
    p.target = "avx2";
    p.dims = {symbolic_dim("N"), fixed_dim("K", 4)};
    p.dims[0].multiple_of = 2;
    p.parameters = {{"scale", DType::f32}};
    Tensor x{"x", DType::f32, {"N"}, Role::input, {}}, y = x;
    y.name = "y";
    p.arguments = {{x, false, true}, {y, true, false}};
    auto copy = tile_node(Copy{"b", {Expr(0)}, load("x", DType::f32, {i}), {}, true, 1});
    auto wait = tile_node(Barrier{Space::shared, 1});
    auto store = tile_node(Compute{"y", {i}, load("b", DType::f32, {Expr(0)}) * parameter("scale", DType::f32), i < N - 1});
    auto guard = tile_node(Guard{i < Expr(3), {store}, {tile_node(Invoke{"other", {"b"}, {{"N", N}}, {}})}});
    auto alloc = tile_node(Alloc{{"b", DType::f32, {Expr(4)}, Space::stack}, {copy, wait, guard}});
    p.body = {tile_node(Let{"n", N / 2, {tile_node(Loop{"i", variable("n"), LoopKind::pipelined, 2, {alloc}})}})};
    return p;
}

TEST_CASE("a tile program prints one node a line") {
    CHECK(to_text(sample()) == "tile program sample for avx2\n"
                               "  dim N % 2 == 0\n"
                               "  dim K = 4\n"
                               "  parameter scale: f32\n"
                               "  input x[N]: f32\n"
                               "  output y[N]: f32\n"
                               "  n = |N|/2\n"
                               "  pipelined(2) i < n\n"
                               "    b[4]: f32 in stack\n"
                               "    b[0] <-(1) x[i]\n"
                               "    barrier shared 1\n"
                               "    if i < 3\n"
                               "      y[i] = b[0]*$scale where i < |N| - 1\n"
                               "    else\n"
                               "      invoke other(b, N=|N|)\n");
}

TEST_CASE("a walk meets every node, outer ones first") {
    std::vector<size_t> kinds;
    walk(sample().body, [&](const TileNode &n) { kinds.push_back(n.index()); });
    CHECK(kinds == std::vector<size_t>{5, 0, 6, 2, 3, 4, 1, 7});
}

TEST_CASE("the hash is of everything but the name") {
    TileProgram a = sample(), b = sample();
    b.name = "other";
    CHECK(resolved_hash(a) == resolved_hash(b));
    b.target = "avx512";
    CHECK(resolved_hash(a) != resolved_hash(b));
}

}  // namespace tessera

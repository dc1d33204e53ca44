#include <catch2/catch.hpp>

#include "compiler/tile/tile_program.h"

namespace tessera::test_tile_program {

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
    auto copy = tile_node(Copy{"b", {Expr(0)}, load("x", DType::f32, {i}), {}});
    auto wait = tile_node(Barrier{});
    auto store = tile_node(Compute{"y", {i}, load("b", DType::f32, {Expr(0)}) * parameter("scale", DType::f32), i < N - 1});
    auto guard = tile_node(Guard{i < Expr(3), {store}, {tile_node(Invoke{"other", {"b"}, {{"N", N}}, {}})}});
    auto alloc = tile_node(Alloc{{"b", DType::f32, {Expr(4)}, Space::stack}, {copy, wait, guard}});
    p.body = {tile_node(Let{"n", N / 2, {tile_node(Loop{"i", variable("n"), LoopKind::serial, {alloc}})}})};
    return p;
}

TEST_CASE("a tile program prints one node a line") {
    CHECK(to_text(sample()) ==
          "tile program sample for avx2\n"
          "  dim N % 2 == 0\n"
          "  dim K = 4\n"
          "  parameter scale: f32\n"
          "  input x[N]: f32\n"
          "  output y[N]: f32\n"
          "  n = |N|/2\n"
          "  for i < n\n"
          "    b[4]: f32 in stack\n"
          "    b[0] <- x[i]\n"
          "    barrier shared 0\n"
          "    if i < 3\n"
          "      y[i] = b[0]*$scale where i < |N| - 1\n"
          "    else\n"
          "      invoke other(b, N=|N|)\n");
}

TEST_CASE("what a line repeats is named below it, and a scalar has no dims") {
    TileProgram p = sample();
    Expr x = load("x", DType::f32, {variable("n")}), poly = x;
    for (int i = 1; i < 5; i++) poly = fma(poly, x, constant(DType::f32, i));
    p.arguments[0].tensor.dims = {};
    p.arguments[1].tensor.dims = {};
    p.body = {tile_node(Let{"n", extent("N") / 2, {tile_node(Compute{"y", {}, poly / abs(poly), {}})}})};
    const std::string text = to_text(p);
    CHECK(text.find("  input x[]: f32\n  output y[]: f32\n") != std::string::npos);
    CHECK(text.substr(text.find("  n = ")) ==
          "  n = |N|/2\n"
          "  y[] = $0/abs($0)\n"
          "    $0 = fma(fma(fma(fma(x[n], x[n], 1.0), x[n], 2.0), x[n], 3.0), x[n], 4.0)\n");
}

TEST_CASE("equal programs have equal hashes, however their expressions are shared in memory") {
    auto program = [](bool shared) {
        TileProgram p = sample();
        auto poly = [] {
            Expr x = load("x", DType::f32, {variable("n")}), sum = x;
            for (int i = 1; i < 8; i++) sum = fma(sum, x, constant(DType::f32, i));
            return sum;
        };
        const Expr one = poly();
        p.body = {tile_node(Let{"n", extent("N") / 2, {tile_node(Compute{"y", {}, one / abs(shared ? one : poly()), {}})}})};
        return p;
    };
    CHECK(resolved_hash(program(true)) == resolved_hash(program(false)));
}

TEST_CASE("a walk meets every node, outer ones first") {
    std::vector<size_t> kinds;
    walk(sample().body, [&](const TileNode &n) { kinds.push_back(n.index()); });
    CHECK(kinds == std::vector<size_t>{6, 0, 7, 2, 4, 5, 1, 8});
}

TEST_CASE("bodies and expressions of every kind of node can be replaced") {
    size_t nodes = 0;
    walk(sample().body, [&](const TileNode &n) {
        nodes++;
        const TileNode bare = map_bodies(n, [](const TileBody &) { return TileBody(); });
        CHECK(bodies_of(bare).size() == bodies_of(n).size());
        for (const TileBody *body : bodies_of(bare)) CHECK(body->empty());
        const TileNode zeros = map_expressions(n, [](const Expr &e) { return constant(e.type(), 0); });
        CHECK(expressions_of(zeros).size() == expressions_of(n).size());
        for (const Expr &e : expressions_of(zeros)) CHECK(e.is_constant());
        CHECK(zeros.index() == n.index());
    });
    CHECK(nodes == 8);
}

TEST_CASE("a store is a Compute or a Copy") {
    std::vector<std::string> stored;
    walk(sample().body, [&](const TileNode &n) {
        if (auto store = store_of(n)) stored.push_back(store->buffer);
    });
    CHECK(stored == std::vector<std::string>{"b", "y"});
    const TileProgram p = sample();
    REQUIRE(only<Let>(p.body));
    CHECK(only<Loop>(only<Let>(p.body)->body));
    CHECK_FALSE(only<Loop>(p.body));
}

TEST_CASE("the hash is of everything but the name") {
    TileProgram a = sample(), b = sample();
    b.name = "other";
    CHECK(resolved_hash(a) == resolved_hash(b));
    b.target = "avx512";
    CHECK(resolved_hash(a) != resolved_hash(b));
}

}  // namespace tessera

}  // namespace tessera::test_tile_program

#include "algorithms/text/shapes.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "support/text/error.h"

using namespace tessera;

namespace {

Algorithm product(int64_t multiple = 1) {
    Builder f("product");
    Dim M = f.dim("M"), N = f.dim("N"), K = symbolic_dim("K");
    K.multiple_of = multiple;
    const Tile x = f.input("x", {M, f.dim(K)}), w = f.input("w", {f.dim(K), N});
    return f.output("acc", dot(x, w)).build();
}

Algorithm pair(int64_t multiple = 1) {
    Builder f("pair");
    Dim H = symbolic_dim("H");
    H.multiple_of = multiple;
    const Tile x = f.input("x", {f.dim("R"), f.dim(H)}), w = f.input("w", {f.dim(H), f.dim("O", 8)});
    const Tile y = f.call("up", product(multiple), {x, w})[0];
    return f.output("y", y + 1.0).build();
}

}  // namespace

TEST_CASE("shapes: each tensor and stage with its extents, through calls") {
    CHECK(shapes_text(pair()) ==
          "pair\n"
          "  input x[R, H]: f32\n"
          "  input w[H, O = 8]: f32\n"
          "  call up = product: K is H, M is R, N is O = 8\n"
          "    input x[M = R, K = H]: f32\n"
          "    input w[K = H, N = O = 8]: f32\n"
          "    stage acc[M = R, N = O = 8]: f32, over K = H, output\n"
          "  stage y[R, O = 8]: f32, output\n");
    Builder f("both");
    const Dim A = f.dim("A", 3), B = f.dim("B"), C = f.dim(derived_dim("C", extent("A") + extent("A")));
    const Tile a = f.input("a", {A, B});
    f.output("c", f.tile(a.at({{"A", variable("C") / Expr(2)}}, {"C", "B"}).value(), {C, B}));
    CHECK_THAT(shapes_text(f.build()), Catch::Contains("  stage c[C = 6, B]: f32, output\n"));
}

TEST_CASE("an error about a dim in a callee says through which calls it came") {
    Builder f("outer");
    const Tile x = f.input("x", {f.dim("P"), f.dim("Q")}), w = f.input("w", {f.dim("Q"), f.dim("O", 8)});
    const Tile y = f.call("first", pair(16), {x, w})[0];
    std::string words;
    try {
        f.output("y", y).build();
    } catch (const UserError &e) { words = e.words(); }
    CHECK_THAT(words,
               Catch::Contains("outer.first: the dim 'H' of pair is bound to 'Q', which is not known to be a multiple of 16; constrain "
                               "it. 'H' of pair is 'K' of product (call first.up)."));
}

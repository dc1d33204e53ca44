// The passes over a finished body: trivial lets, fused loops, shared memory.
#include <catch2/catch.hpp>

#include "compiler/lower/passes/fuse_parallel.h"
#include "compiler/lower/passes/shared_memory.h"
#include "compiler/lower/passes/trivial_lets.h"

namespace tessera::test_body_passes {

static TileBody store(const std::vector<Expr> &index) { return {tile_node(Compute{"y", index, constant(DType::f32, 1), {}})}; }

static TileBody parallel(const std::string &variable, const Expr &count, TileBody body) {
    return {tile_node(Loop{variable, count, LoopKind::parallel, std::move(body)})};
}

TEST_CASE("a let of a constant goes, any other stays") {
    const TileBody inner = {tile_node(Let{"b", variable("a") + extent("N"), store({variable("a"), variable("b")})})};
    CHECK(to_text(without_trivial_lets({tile_node(Let{"a", Expr(3), inner})})) == "b = 3 + |N|\ny[3, b] = 1.0\n");
}

TEST_CASE("parallel loops directly in one another run as one") {
    const TileBody both = parallel("m", extent("M"), parallel("n", Expr(4), store({variable("m"), variable("n")})));
    CHECK(to_text(fuse_parallel(both, LoopKind::parallel)) == "parallel m*n < |M|*4\n  m = m*n/4\n  n = m*n%4\n  y[m, n] = 1.0\n");
    // The inner count differs from one outer iteration to the next.
    const TileBody triangle = parallel("m", extent("M"), parallel("n", variable("m"), store({variable("m"), variable("n")})));
    CHECK(to_text(fuse_parallel(triangle, LoopKind::parallel)) == "parallel m < |M|\n  for n < m\n    y[m, n] = 1.0\n");
}

TEST_CASE("shared memory goes to the buffers that were named first") {
    TileBody nest = store({Expr(0)});
    for (const std::string name : {"first", "third", "second"})  // the order of nodes does not matter
        nest = {tile_node(Alloc{{name, DType::f32, {Expr(name == "second" ? 8 : 4)}, Space::shared}, nest})};
    const std::string text = to_text(with_shared_memory(nest, {"first", "second", "third"}, 40));
    CHECK_THAT(text, Catch::Contains("first[4]: f32 in shared") && Catch::Contains("second[8]: f32 in workspace") &&
                         Catch::Contains("third[4]: f32 in shared"));
}

}  // namespace tessera::test_body_passes

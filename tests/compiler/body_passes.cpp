// The passes over a finished body: trivial lets, fused loops, shared memory, the stack.
#include <catch2/catch.hpp>

#include "compiler/lower/passes/fuse_parallel.h"
#include "compiler/lower/passes/shared_memory.h"
#include "compiler/lower/passes/stack_buffers.h"
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

TEST_CASE("near buffers that the stack cannot hold together are in the workspace, and registers have their room") {
    const auto alloc = [](const std::string &name, int64_t kib, Space space, TileBody body) {
        return TileBody{tile_node(Alloc{{name, DType::f32, {Expr(kib * 256)}, space}, std::move(body)})};
    };
    // 60 + 60 fit beside 4 of registers; 16 more do not, and 4 do.
    const TileBody inner = alloc("tile", 4, Space::registers, store({Expr(0)}));
    TileBody body = alloc("c", 16, Space::stack, alloc("d", 4, Space::stack, inner));
    body = alloc("a", 60, Space::stack, alloc("b", 60, Space::stack, body));
    const std::string text = to_text(limit_stack(body));
    for (const char *in_stack :
         {"a[15360]: f32 in stack", "b[15360]: f32 in stack", "d[1024]: f32 in stack", "tile[1024]: f32 in registers"})
        CHECK_THAT(text, Catch::Contains(in_stack));
    CHECK_THAT(text, Catch::Contains("c[4096]: f32 in workspace"));
    // What does not live at the same time counts once.
    TileBody both = alloc("e", 100, Space::stack, store({Expr(0)})), next = alloc("f", 100, Space::stack, store({Expr(0)}));
    both.insert(both.end(), next.begin(), next.end());
    CHECK(to_text(limit_stack(both)) == to_text(both));
}

}  // namespace tessera::test_body_passes

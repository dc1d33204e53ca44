// Room in the workspace: bytes, and buffers that have more elements than positions.
#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/abi/workspace.h"
#include "runtime/kernel.h"
#include "tests/compiler/cases.h"

namespace tessera::test_workspace {

using namespace tessera::test;

TEST_CASE("bytes of a buffer are over extents, and those of one that is too large are refused") {
    const Expr M = extent("M"), N = extent("N");
    const int64_t refused = TESS_MAX_WORKSPACE_BYTES * 2;
    auto bytes = [](DType type, const std::vector<Expr> &extents) { return workspace_bytes({"b", type, extents, Space::workspace}); };
    CHECK(bytes(DType::f64, {Expr(3), Expr(5)}).is_constant(120));
    CHECK(bytes(DType::f32, {Expr(0), M}).is_constant(0));
    CHECK(bytes(DType::u8, {Expr(TESS_MAX_ELEMENTS)}).is_constant(TESS_MAX_ELEMENTS));
    CHECK(bytes(DType::u8, {Expr(1 << 20), Expr(1 << 20), Expr(1 << 30), Expr(1 << 30)}).is_constant(refused));
    CHECK(to_string(bytes(DType::f32, {M, N})) ==
          "select(min(max(|M|, 0), 2147418112)*max(|N|, 0) < 2147418112, min(max(|M|, 0), 2147418112)*max(|N|, 0)*4, 281474976710656)");
}

// w is packed into panels of 48 columns, of which there is one.
static Case packed_columns() {
    Builder f("packed_columns");
    Tile x = f.input("x", {f.dim("M"), f.dim("K")}), w = f.input("w", {f.dim("K"), f.dim("N")});
    Case c{"packed_columns", f.output("y", dot(x, w)).build(), {}, {}};
    Knobs &y = c.stages["y"];
    y.micro = {{"M", 4}, {"N", 48}}, y.vector = {{"N", 8}},
    y.pack = {{"w", {"root", {{"N", 48, false}, {"K", 0, false}, {"N", 48, true}}}}};
    return c;
}

static void check(const Target &target, const Build &build) {
    Case c = packed_columns();
    if (target.is_gpu()) c.stages = for_gpu(c.stages);
    const TileProgram p = lowered(c, target);
    const Loaded code({p}, target, build);
    INFO(target.name << " " << build.compiler);
    const int64_t most = TESS_MAX_ELEMENTS / 48;
    Loaded::Room room = code.workspace(p, {{"M", 1}, {"K", most}, {"N", 1}});
    CHECK(room.status == TESS_OK);
    CHECK(room.bytes / 64 == static_cast<uint64_t>(most * 48 * 4 + 63) / 64);
    for (const Extents &shape : std::vector<Extents>{{{"M", 1}, {"K", most + 1}, {"N", 1}},
                                                     {{"M", 1}, {"K", TESS_MAX_ELEMENTS}, {"N", 1}},
                                                     {{"M", 0}, {"K", TESS_MAX_ELEMENTS / 24}, {"N", 24}}}) {
        room = code.workspace(p, shape);
        char words[200];
        tess_status_message(room.status, nullptr, nullptr, words, sizeof words);
        CHECK(std::string(words) == "a buffer of the workspace would have more than 2147418111 elements; compute a part at a time");
        CHECK(room.bytes == 0);
    }
}

TEST_CASE("a buffer of the workspace with too many elements is a status") {
    for (const Target &target : targets()) check(target, {});
    check(target_named("x86-64"), {"gcc", "-O1"});
    if (has_opencl()) check(target_named("opencl"), {});
}

}  // namespace tessera::test_workspace

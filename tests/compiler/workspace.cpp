// Room in the workspace: bytes, and buffers that have more elements than positions.
#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "compiler/abi/workspace.h"
#include "runtime/abi/kernel.h"
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

static uint64_t bytes_of(const Case &c, const Extents &shape) {
    const Target target = target_named("x86-64");
    const TileProgram p = lowered(c, target);
    const Loaded::Room room = Loaded({p}, target, {}).workspace(p, shape);
    CHECK(room.status == TESS_OK);
    return room.bytes;
}

TEST_CASE("calls that are emitted once use the same workspace in turn") {
    Builder g("squared");
    const Tile t = g.input("t", {g.dim("P"), g.dim("Q")});
    const Algorithm squared = g.output("u", (t * t).named("square") + 1.0).build();
    Builder f("chained");
    Tile x = f.input("x", {f.dim("M"), f.dim("N")});
    for (const char *scope : {"first", "second", "third"}) x = f.call(scope, squared, {x})[0];
    Case c{"chained", f.output("y", x).build(), {}, {}};
    const Extents shape{{"M", 64}, {"N", 64}};
    constexpr uint64_t table = 64 * 64 * 4;
    CHECK(bytes_of(c, shape) == 2 * table);  // of two results of calls and three squares, what a stage reads and what it makes
    for (const char *scope : {"first", "second", "third"}) c.stages[scope].call = "once";
    CHECK(bytes_of(c, shape) == 3 * table);  // what a call reads and what it makes, and one square at a time
}

TEST_CASE("loops of threads use the same memory of workers in turn") {
    auto products = [](int count) {
        Builder f("products");
        const Dim M = f.dim("M"), K = f.dim("K");
        Case c{"products", {}, {}, {}};
        for (int i = 0; i < count; i++) {
            const std::string n = std::to_string(i);
            const Dim N = f.dim("N" + n, 64);
            const Tile x = f.input("x" + n, {M, K}), w = f.input("w" + n, {K, N});
            f.output("y" + n, dot(x, w));
            Knobs &y = c.stages["y" + n];
            y.block = {{"M", 16}}, y.micro = {{"M", 4}, {N.name, 16}}, y.vector = {{N.name, 8}};
            y.loops = {"block.M", "micro." + N.name, "micro.M"}, y.parallel = {"block.M"};
            y.pack = {{"x" + n, {"block.M", {{"M", 4, false}, {"K", 0, false}, {"M", 4, true}}}}};
        }
        c.algorithm = f.build();
        return c;
    };
    const Extents shape{{"M", 40}, {"K", 100}};
    const uint64_t one = bytes_of(products(1), shape);
    CHECK(one > 0);
    CHECK(bytes_of(products(3), shape) == one);
}

}  // namespace tessera::test_workspace

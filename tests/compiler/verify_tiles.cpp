#include <catch2/catch.hpp>

#include "compiler/check/verify_tiles.h"
#include "support/text/error.h"

namespace tessera::test_verify_tiles {

namespace tessera {

static const Expr i = variable("i"), j = variable("j"), N = extent("N");

static TileProgram over_n(TileBody body) {
    TileProgram p;
    p.name = "p";
    p.target = "avx2";
    p.dims = {symbolic_dim("N")};
    Tensor x{"x", DType::f32, {"N"}, Role::input, {}}, y = x;
    y.name = "y";
    p.arguments = {{x, false, true}, {y, true, false}};
    p.body = std::move(body);
    return p;
}

static std::shared_ptr<const TileNode> loop(const std::string &v, const Expr &n, LoopKind kind, TileBody body) {
    return tile_node(Loop{v, n, kind, std::move(body)});
}
static std::shared_ptr<const TileNode> set(const std::string &buffer, const Expr &index, const Expr &value, const Expr &guard = {}) {
    return tile_node(Compute{buffer, {index}, value, guard});
}
static Expr at(const std::string &buffer, const Expr &e) { return load(buffer, DType::f32, {e}); }
static void refused(TileBody body, const std::string &words) { CHECK_THROWS_WITH(verify(over_n(std::move(body))), Catch::Contains(words)); }

TEST_CASE("a sound program passes, with what it takes for granted") {
    auto tail = load_or("x", DType::f32, {i * 4 + j}, i * 4 + j < N, constant(DType::f32, 0));
    CHECK(verify(over_n({loop("i", (N + 3) / 4, LoopKind::parallel,
                              {loop("j", 4, LoopKind::vector, {set("y", i * 4 + j, tail, i * 4 + j < N)})})}))
              .empty());
    Buffer b{"b", DType::f32, {N / 3}, Space::workspace};
    auto assumed = verify(over_n({tile_node(Alloc{b, {loop("i", N, LoopKind::serial, {set("b", i * i, at("x", i))})}})}));
    REQUIRE(assumed.size() == 1);
    CHECK_THAT(assumed[0], Catch::Contains("index 0 of b[i*i] cannot be shown to be below |N|/3"));
}

TEST_CASE("memory") {
    refused({loop("i", N, LoopKind::serial, {set("y", i, at("x", i + 1))})},
            "error[schedule.unproved]: p: index 0 of x[i + 1] cannot be shown to be below |N|, so the schedule is refused; use tiles that "
            "divide one another");
    refused({loop("i", N, LoopKind::serial, {set("y", i - 1, at("x", i))})}, "index 0 of y[i - 1] cannot be shown to be at least 0");
    refused({loop("i", N, LoopKind::serial, {set("y", i, at("z", i))})}, "buffer z is not there");
    refused({loop("i", N, LoopKind::serial, {set("y", i, at("x", j))})}, "variable j is not bound");
    refused({set("x", 0, at("x", 0))}, "x is an input and is stored to");
}

TEST_CASE("streamed loops") {
    auto copy = [](const Expr &to, const Expr &from, const Expr &guard = {}) { return tile_node(Copy{"y", {to}, at("x", from), guard}); };
    auto streamed = [](const TileBody &body) { return loop("i", N, LoopKind::streamed, body); };
    CHECK(verify(over_n({streamed({copy(i, i)})})).empty());
    for (const TileBody &body : {TileBody{copy(i, Expr(0))}, TileBody{copy(N - 1 - i, i)}, TileBody{copy(i, i, i < N)},
                                 TileBody{copy(i, i), copy(i, i)}, TileBody{set("y", i, at("x", i) * at("x", i))}})
        refused({streamed(body)}, "the streamed loop i is more than a copy of elements side by side");
}

TEST_CASE("races") {
    refused({loop("i", N, LoopKind::parallel, {set("y", 0, at("x", i), i < N)})},
            "two iterations of the parallel loop i may meet: one stores to y[0], another stores to y[0]");
    refused({loop("i", N, LoopKind::vector, {set("y", i, at("x", i))})}, "i is vector and has no constant count");
    Buffer b{"b", DType::f32, {Expr(8)}, Space::stack};
    auto shifted = loop("i", 7, LoopKind::vector, {set("b", i + 1, at("b", i))});
    refused({tile_node(Alloc{b, {set("b", 0, constant(DType::f32, 0)), shifted}})}, "may meet");
    // Its own buffer is nobody else's.
    auto own = loop("i", N, LoopKind::parallel, {tile_node(Alloc{b, {set("b", 0, at("x", i)), set("y", i, at("b", 0))}})});
    CHECK_NOTHROW(verify(over_n({own})));
    // Quotient and remainder of one index tell iterations apart together.
    auto pair =
        loop("p", N * 4, LoopKind::parallel,
             {tile_node(
                 Let{"i", variable("p") / 4, {tile_node(Let{"j", variable("p") % 4, {tile_node(Alloc{b, {set("b", j, at("x", i))}})}})}})});
    CHECK_NOTHROW(verify(over_n({pair})));
}

TEST_CASE("order and storage") {
    Buffer b{"b", DType::f32, {Expr(8)}, Space::stack}, big{"big", DType::f32, {Expr(1 << 20)}, Space::stack},
        loose{"loose", DType::f32, {N}, Space::stack};
    refused({tile_node(Alloc{b, {loop("i", N, LoopKind::serial, {set("y", i, at("b", 0))})}})},
            "b is read before anything is stored to it");
    refused({tile_node(Alloc{big, {}})},
            "error[schedule.storage]: p: the tiles that live at once need more than 131072 bytes of registers and stack ('big' is one of "
            "them); make their micro tiles smaller.");
    refused({tile_node(Alloc{loose, {}})}, "loose is in stack and has no constant extents");
    refused({tile_node(Barrier{})}, "barriers are not for avx2");
    refused({loop("i", N, LoopKind::thread, {})}, "thread loops are not for avx2");
    b.space = Space::shared;
    refused({tile_node(Alloc{b, {}})}, "b is in shared memory, which avx2 does not have");
}

TEST_CASE("a state is read where it is stored") {
    TileProgram p = over_n({loop("i", N - 1, LoopKind::serial, {set("y", i, at("y", i + 1))})});
    p.arguments[1].read = true;
    CHECK_THROWS_WITH(verify(p), Catch::Contains("is stored from another element of the same state"));
}

static TileProgram on_gpu(TileBody body) {
    TileProgram p = over_n(std::move(body));
    p.target = "cuda-sm80";
    return p;
}

static void refused_on_gpu(TileBody body, const std::string &words) {
    CHECK_THROWS_WITH(verify(on_gpu(std::move(body))), Catch::Contains(words));
}

TEST_CASE("what threads of a block copy to shared memory is read after a barrier of all of them") {
    Buffer b{"b", DType::f32, {Expr(8)}, Space::shared};
    auto program = [&](TileBody after) {
        const Expr value = load_or("x", DType::f32, {i}, i < N, constant(DType::f32, 0));
        TileBody body = {loop("i", 8, LoopKind::thread, {tile_node(Copy{"b", {i}, value, {}})})};
        body.insert(body.end(), after.begin(), after.end());
        return TileBody{loop("all", 1, LoopKind::block, {tile_node(Alloc{b, body})})};
    };
    auto use = loop("k", N, LoopKind::serial, {loop("t", 1, LoopKind::thread, {set("y", variable("k"), at("b", 0))})});
    refused_on_gpu(program({use}), "threads may meet in b without a barrier between them");
    CHECK_NOTHROW(verify(on_gpu(program({tile_node(Barrier{}), use}))));
    auto divergent = loop("t", 8, LoopKind::thread, {tile_node(Guard{variable("t") < Expr(4), {tile_node(Barrier{})}, {}})});
    refused_on_gpu(program({divergent}), "a barrier is inside the thread loop t, where threads do not wait for one another");
}

TEST_CASE("threads of a block") {
    Buffer b{"b", DType::f32, {Expr(8)}, Space::shared}, own{"own", DType::f32, {Expr(8), Expr(2)}, Space::registers};
    auto block = [&](TileBody body) { return TileBody{loop("all", 1, LoopKind::block, std::move(body))}; };
    auto fill = loop("i", 8, LoopKind::thread, {set("b", i, constant(DType::f32, 0))});
    auto turn = loop("t", 8, LoopKind::thread, {set("y", variable("t"), at("b", Expr(7) - variable("t")), variable("t") < N)});
    refused_on_gpu(block({tile_node(Alloc{b, {fill, turn}})}), "threads may meet in b without a barrier between them");
    CHECK_NOTHROW(verify(on_gpu(block({tile_node(Alloc{b, {fill, tile_node(Barrier{}), turn}})}))));
    refused_on_gpu(block({tile_node(Alloc{b, {set("b", 0, constant(DType::f32, 0))}})}), "b[0] is stored to by every thread of a block");
    refused_on_gpu({loop("t", 8, LoopKind::thread, {})}, "the thread loop t has no constant count or is in no block");
    auto other = loop("t", 8, LoopKind::thread, {tile_node(Compute{"own", {Expr(7) - variable("t"), 0}, constant(DType::f32, 0), {}})});
    refused_on_gpu(block({tile_node(Alloc{own, {other}})}), "own[7 - t, 0] is in registers of another thread");
    b.extents = {Expr(1 << 16)};
    refused_on_gpu(block({tile_node(Alloc{b, {}})}), "a block needs more shared memory than cuda-sm80 has");
}

}  // namespace tessera

}  // namespace tessera::test_verify_tiles

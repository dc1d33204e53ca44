// Asynchronous copies by hand: what the verifier knows of their groups, and which slots of rings it tells apart.
#include <catch2/catch.hpp>

#include "compiler/check/awaits.h"
#include "compiler/check/barriers.h"
#include "compiler/check/slots.h"

namespace tessera::test_awaits {

static const Expr k = variable("k"), p = variable("p"), t = variable("t");

static std::shared_ptr<const TileNode> fill(const Expr &slot) {
    Copy copy{"s", {slot, t}, load("x", DType::f32, {t}), {}};
    copy.is_asynchronous = true;
    return tile_node(Loop{"t", 8, LoopKind::thread, {tile_node(copy)}});
}
static std::shared_ptr<const TileNode> use(const Expr &slot) {
    const Expr at = variable("u");
    return tile_node(Loop{"u", 8, LoopKind::thread, {tile_node(Compute{"y", {at}, load("s", DType::f32, {slot, Expr(7) - at}), {}})}});
}
static std::shared_ptr<const TileNode> await(int pending) { return tile_node(Await{pending}); }
static const std::shared_ptr<const TileNode> commit = tile_node(Commit{}), barrier = tile_node(Barrier{});

static TileBody in_block(TileBody body) {
    const Buffer ring{"s", DType::f32, {Expr(3), Expr(8)}, Space::shared};
    return {tile_node(Loop{"b", 1, LoopKind::block, {tile_node(Alloc{ring, std::move(body)})}})};
}
static std::shared_ptr<const TileNode> loop(TileBody body, const Expr &count = extent("K")) {
    return tile_node(Loop{"k", count, LoopKind::serial, std::move(body)});
}
static std::shared_ptr<const TileNode> before(TileBody body, int64_t slices = 2) {
    return tile_node(Loop{"p", slices, LoopKind::unrolled, std::move(body)});
}

static std::string wrong(TileBody body) { return wrong_await(in_block(std::move(body))); }

TEST_CASE("a ring of slices that are awaited is as it should be") {
    const auto guarded = tile_node(Guard{k + 2 < extent("K"), {fill((k + 2) % 3)}, {}});
    const TileBody first = {tile_node(Guard{p < extent("K"), {fill(p)}, {}}), commit};
    const TileBody steady = {await(1), barrier, guarded, commit, use(k % 3)};
    CHECK(wrong({before(first), loop(steady), await(0)}) == "");
    const std::vector<Dim> dims = {symbolic_dim("K")};
    CHECK(missing_barrier(in_block({before(first), loop(steady), await(0)}), dims) == "");
    // What is lost or changed is found.
    CHECK(wrong({before(first), loop(steady)}).find("s is freed where an asynchronous copy to it may be in flight") == 0);
    CHECK(wrong({before(first), loop({barrier, guarded, commit, use(k % 3)}), await(0)}).find("s is read") == 0);
    CHECK(
        wrong({before(first), loop({await(2), barrier, guarded, commit, use(k % 3)}), await(0)}).find("waits for nothing: 2 were issued") !=
        std::string::npos);
    CHECK(wrong({before(first), loop({await(1), barrier, guarded, commit, use((k + 1) % 3)}), await(0)}).find("s is read") == 0);
    CHECK(wrong({before(first), loop({await(1), barrier, guarded, use(k % 3)}), await(0)}) != "");
    CHECK(wrong({before({fill(p)}), commit, loop(steady), await(0)}) != "");
    const auto other = tile_node(Guard{k + 2 < extent("K"), {fill((k + 1) % 3)}, {}});
    CHECK(wrong({before(first), loop({await(1), barrier, other, commit, use(k % 3)}), await(0)}).find("s is stored to") == 0);
    CHECK(wrong({before(first, 1), loop(steady), await(0)}) != "");
    CHECK(wrong({tile_node(Guard{extent("K") < 5, {fill(0), commit}, {}}), await(0)}).find("branches leave 1 and 0 groups") == 0);
    for (const TileBody &lost : {TileBody{await(1), guarded, commit, use(k % 3)}, TileBody{await(1), guarded, commit, barrier, use(k % 3)}})
        CHECK(missing_barrier(in_block({before(first), loop(lost), await(0)}), dims) ==
              "threads may meet in s without a barrier between them");
}

TEST_CASE("slots are told apart where their variable has one value for all threads") {
    const auto all = [](const std::string &) { return true; };
    const auto at = [&](const Expr &e) { return slot_of("s", {e, t}, all, 3); };
    CHECK_FALSE(may_be_same(at(k % 3), at((k + 2) % 3)));
    CHECK(may_be_same(at(k % 3), at((k + 3) % 3)));
    CHECK(may_be_same(at(k % 3), at((p + 2) % 3)));
    CHECK(may_be_same(at(k % 3), at(k % 4)));
    CHECK_FALSE(may_be_same(at(Expr(1)), at(Expr(2))));
    CHECK(may_be_same(at(k), at(Expr(2))));
    CHECK(may_be_same(Slot("s"), at(k % 3)));
    CHECK_FALSE(may_be_same(Slot("s"), Slot("x")));
    CHECK(slot_of("s", {k % 3}, [](const std::string &v) { return v != "k"; }) == Slot("s"));
}

}  // namespace tessera::test_awaits

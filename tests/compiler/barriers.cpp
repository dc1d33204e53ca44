#include <catch2/catch.hpp>

#include "compiler/check/barriers.h"
#include "compiler/lower/passes/add_barriers.h"

namespace tessera::test_barriers {

namespace tessera {

static const Expr t = variable("t"), u = variable("u"), k = variable("k"), N = extent("N");
static const std::vector<Dim> dims = {symbolic_dim("N")};

static std::shared_ptr<const TileNode> threads(const std::string &v, TileBody body) {
    return tile_node(Loop{v, 8, LoopKind::thread, std::move(body)});
}
static std::shared_ptr<const TileNode> serial(TileBody body) { return tile_node(Loop{"k", N, LoopKind::serial, std::move(body)}); }
static std::shared_ptr<const TileNode> set(const std::string &buffer, const Expr &index, const Expr &value) {
    return tile_node(Compute{buffer, {index}, value, {}});
}
static Expr at(const std::string &buffer, const Expr &index) { return load(buffer, DType::f32, {index}); }

// The nodes of a block as one letter each: a thread loop its variable, B a barrier, a serial loop parentheses.
static std::string shape(const TileBody &body) {
    std::string text;
    for (const auto &node : body) {
        if (std::holds_alternative<Barrier>(*node)) text += "B";
        if (auto *n = std::get_if<Alloc>(node.get())) text += shape(n->body);
        auto *loop = std::get_if<Loop>(node.get());
        if (loop)
            text += loop->kind == LoopKind::thread  ? loop->variable
                    : loop->kind == LoopKind::block ? shape(loop->body)
                                                    : "(" + shape(loop->body) + ")";
    }
    return text;
}

static std::string with(TileBody body, Space space = Space::shared) {
    for (const char *name : {"a", "b"}) body = {tile_node(Alloc{{name, DType::f32, {Expr(64)}, space}, std::move(body)})};
    body = add_barriers({tile_node(Loop{"all", 1, LoopKind::block, body})}, dims);
    CHECK(missing_barrier(body, dims) == "");
    return shape(body);
}

TEST_CASE("a barrier stands where threads meet, and only there") {
    Expr one = constant(DType::f32, 1);
    auto fill = threads("t", {set("a", t, one)}), turn = threads("u", {set("b", u, at("a", Expr(7) - u))}),
         apart = threads("v", {set("b", variable("v"), one)});
    CHECK(with({fill, turn}) == "tBu");
    CHECK(with({fill, apart}) == "tv");
    CHECK(with({fill, turn}, Space::registers) == "tu");
    CHECK(with({turn, fill}) == "uBt");
    CHECK(missing_barrier({tile_node(Loop{"all", 1, LoopKind::block, {fill, turn}})}, dims) ==
          "threads may meet in a without a barrier between them");
}

TEST_CASE("an iteration waits for the one before, and for what is before the loop once") {
    Expr one = constant(DType::f32, 1);
    auto fill = threads("t", {set("a", t, one)}), turn = threads("u", {set("b", u, at("a", Expr(7) - u))});
    CHECK(with({serial({fill, turn})}) == "(BtBu)");
    CHECK(with({fill, serial({threads("u", {set("b", k * 8 + u, at("a", Expr(7) - u))})})}) == "tB(u)");
    CHECK(with({serial({threads("t", {set("a", k * 8 + t, one)})}), turn}) == "(t)Bu");
    CHECK(with({serial({threads("t", {set("a", k * 7 + t, one)})})}) == "(Bt)");
}

}  // namespace tessera

}  // namespace tessera::test_barriers

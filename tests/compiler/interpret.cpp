#include <catch2/catch.hpp>

#include "algorithms/evaluate/array.h"
#include "compiler/interpret/interpret.h"
#include "support/text/error.h"

namespace tessera::test_interpret {

namespace tessera {

static Tensor tensor(const std::string &name, std::vector<std::string> dims, DType type = DType::f32) {
    return {name, type, std::move(dims), Role::input, {}};
}

// y[N] from x[N], by `body`.
static TileProgram over_n(TileBody body) {
    TileProgram p;
    p.name = "p";
    p.target = "avx2";
    p.dims = {symbolic_dim("N")};
    p.arguments = {{tensor("x", {"N"}), false, true}, {tensor("y", {"N"}), true, false}};
    p.body = std::move(body);
    return p;
}

static std::shared_ptr<const TileNode> loop(const std::string &v, const Expr &n, TileBody body, LoopKind kind = LoopKind::serial) {
    return tile_node(Loop{v, n, kind, std::move(body)});
}

static std::shared_ptr<const TileNode> set(const std::string &buffer, std::vector<Expr> index, const Expr &value, const Expr &guard = {}) {
    return tile_node(Compute{buffer, std::move(index), value, guard});
}

static Array run(const TileProgram &p, std::vector<double> x) {
    auto n = static_cast<int64_t>(x.size());
    Array in(DType::f32, {n}, x), out(DType::f32, {n});
    interpret(p, {{"x", in.view("x")}, {"y", out.view("y")}});
    return out;
}

static const Expr i = variable("i"), j = variable("j"), N = extent("N");
static Expr x_at(const Expr &e) { return load("x", DType::f32, {e}); }

TEST_CASE("a tile program runs as it is written") {
    // A vector loop's lanes past the end are guarded; a buffer lives for its nodes; a Let has its value.
    Buffer tile{"tile", DType::f32, {Expr(4)}, Space::stack};
    Expr at = variable("start") + j;
    TileProgram p = over_n({loop(
        "i", (N + 3) / 4,
        {tile_node(Let{
            "start",
            i * 4,
            {tile_node(Alloc{
                tile,
                {loop("j", 4, {set("tile", {j}, load_or("x", DType::f32, {at}, at < N, constant(DType::f32, 0)))}, LoopKind::vector),
                 loop("k", 4,
                      {set("y", {variable("start") + variable("k")}, load("tile", DType::f32, {variable("k")}) * constant(DType::f32, 2),
                           variable("start") + variable("k") < N)})}})}})})});
    CHECK(run(p, {1, 2, 3, 4, 5, 6}).values() == std::vector<double>{2, 4, 6, 8, 10, 12});
    CHECK(run(p, {}).values().empty());
}

TEST_CASE("both sides of a guard, and a condition that nothing fails") {
    TileProgram p = over_n({loop("i", N, {tile_node(Guard{i % 2 == Expr(0), {set("y", {i}, x_at(i))}, {set("y", {i}, -x_at(i))}})})});
    CHECK(run(p, {1, 2, 3}).values() == std::vector<double>{1, -2, 3});
}

TEST_CASE("arguments lie as their strides say, and dims come from their extents") {
    TileProgram p;
    p.name = "transpose";
    p.dims = {symbolic_dim("M"), derived_dim("M1", extent("M") + 1)};
    p.arguments = {{tensor("x", {"M"}), false, true}, {tensor("y", {"M1"}), true, false}};
    p.body = {loop("i", extent("M1"), {set("y", {i}, load_or("x", DType::f32, {i}, i < extent("M"), constant(DType::f32, 9)))})};
    Array x(DType::f32, {6}, {1, 2, 3, 4, 5, 6}), y(DType::f32, {4});
    TensorView view = x.view("x");
    view.extents = {3}, view.strides = {2};
    interpret(p, {{"x", view}, {"y", y.view("y")}});
    CHECK(y.values() == std::vector<double>{1, 3, 5, 9});
}

TEST_CASE("positions made of data saturate to 32 bits, parameters have their values") {
    TileProgram p = over_n({loop("i", N, {set("y", {i}, x_at(bounded(cast(DType::index, parameter("q", DType::i64)), 0, N)))})});
    p.parameters = {{"q", DType::i64}};
    for (auto [q, expected] : {std::pair{int64_t{1}, 2.0}, {int64_t{1} << 40, 3.0}, {-(int64_t{1} << 40), 1.0}}) {
        Array x(DType::f32, {3}, {1, 2, 3}), y(DType::f32, {3});
        interpret(p, {{"x", x.view("x")}, {"y", y.view("y")}}, {}, {{"q", Scalar::of_integer(DType::i64, q)}});
        CHECK(y.values()[0] == expected);
    }
}

TEST_CASE("what a program must not do is named, with where the loops are") {
    auto refused = [](TileBody body, const std::string &words) {
        CHECK_THROWS_WITH(run(over_n(std::move(body)), {1, 2, 3}), Catch::Contains(words));
    };
    refused({loop("i", N, {set("y", {i}, x_at(i + 1))})}, "p, storing to y, i = 2: x[3] is outside of its extents (3)");
    refused({loop("i", N + 1, {set("y", {i}, x_at(0))})}, "i = 3: y[3] is outside of its extents (3)");
    refused({loop("i", N - 1, {set("y", {i}, x_at(i))})}, "p: y[2] is never written");
    refused({set("x", {0}, x_at(0))}, "p does not store to its input x");
    refused({loop("i", N, {set("y", {i}, x_at(j))})}, "'j' is not defined where it is used");
    Buffer b{"b", DType::f32, {Expr(2)}, Space::stack};
    Expr b_at = load("b", DType::f32, {Expr(1)});
    refused({tile_node(Alloc{b, {set("b", {0}, constant(DType::f32, 1)), loop("i", N, {set("y", {i}, b_at)})}})},
            "i = 0: b[1] is read before it is written");
    refused({tile_node(Alloc{b, {set("b", {0}, b_at), set("y", {0}, load("b", DType::f32, {Expr(0)}))}})},
            "b[0] is made of elements never written");
}

TEST_CASE("padding may be made of elements never written while nothing comes of it") {
    Buffer b{"b", DType::f32, {Expr(2)}, Space::stack};
    Expr b_at = load("b", DType::f32, {j});
    TileProgram p = over_n({tile_node(
        Alloc{b,
              {set("b", {0}, constant(DType::f32, 1)), loop("j", 2, {set("b", {j}, b_at + b_at)}),
               loop("i", N, {set("y", {i}, select(i < N, load("b", DType::f32, {Expr(0)}), load("b", DType::f32, {Expr(1)})))})}})});
    CHECK(run(p, {0, 0}).values() == std::vector<double>{2, 2});
}

}  // namespace tessera

}  // namespace tessera::test_interpret

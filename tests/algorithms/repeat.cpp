// Calls that repeat and calls of views: what they mean, and what is refused.
#include <catch2/catch.hpp>

#include "algorithms/build/builder.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/index/affine.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/verify/verify.h"
#include "tests/support/words.h"

namespace tessera::test_repeat {

using test::check_words;

// y = x + b, and whether all of y is at least 10.
static Algorithm step() {
    Builder f("step");
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), b = f.input("b", {N});
    const Tile y = (x + b).named("total");
    return f.output("y", y).output("enough", min(y, N) >= 10.0, DType::boolean).build();
}

static Algorithm rounds(const Repeat &repeat) {
    Builder f("rounds");
    const Dim T = f.dim("T"), N = f.dim("N");
    const std::vector<Tile> made = f.repeat("step", step(), repeat, {f.input("x", {N}), f.input("b", {T, N})});
    Builder &out = f.output("y", made[0]);
    if (repeat.stacked.count("enough") || repeat.until == "enough") out.output("enough", made[1], DType::boolean);
    return f.build();
}

static const Repeat carrying = {"T", {{"x", "y"}}, {"enough"}};

TEST_CASE("what a round gives is carried to the next, or stacked") {
    const Array x(DType::f32, {2}, {1, 2}), b(DType::f32, {3, 2}, {1, 1, 20, 20, 3, 3});
    auto all = evaluate(rounds(carrying), {{"x", x}, {"b", b}});
    CHECK(all.at("y").values() == std::vector<double>{25, 26});
    CHECK(all.at("enough").values() == std::vector<double>{0, 1, 1});
    CHECK(all.at("enough").extents == std::vector<int64_t>{3});
    all = evaluate(rounds({"T", {{"x", "y"}}, {"y", "enough"}}), {{"x", x}, {"b", b}});
    CHECK(all.at("y").values() == std::vector<double>{2, 3, 22, 23, 25, 26});
    all = evaluate(rounds({"T", {{"x", "y"}}, {}, "enough"}), {{"x", x}, {"b", b}});
    CHECK(all.at("y").values() == std::vector<double>{22, 23});
    CHECK(all.at("enough").get(0).integer == 1);
    all = evaluate(rounds(carrying), {{"x", x}, {"b", b}}, {}, Precision::f64);
    CHECK(all.at("y").dtype == DType::f64);
    CHECK(all.at("y").values() == std::vector<double>{25, 26});
}

TEST_CASE("no rounds give what the first would have been given") {
    const Array x(DType::f32, {2}, {1, 2}), none(DType::f32, {0, 2});
    for (Precision precision : {Precision::policy, Precision::f64}) {
        auto all = evaluate(rounds(carrying), {{"x", x}, {"b", none}}, {}, precision);
        CHECK(all.at("y").values() == std::vector<double>{1, 2});
        CHECK(all.at("enough").extents == std::vector<int64_t>{0});
        all = evaluate(rounds({"T", {{"x", "y"}}, {}, "enough"}), {{"x", x}, {"b", none}}, {}, precision);
        CHECK(all.at("y").values() == std::vector<double>{1, 2});
        CHECK(all.at("enough").get(0).integer == 0);
    }
}

TEST_CASE("points of what rounds give are those of the whole") {
    const Array x(DType::f32, {2}, {1, 2}), b(DType::f32, {3, 2}, {1, 1, 20, 20, 3, 3});
    EvaluationOptions options;
    options.extents = {{"T", 3}, {"N", 2}}, options.boxes = {{"y", {{1, 1}}}};
    CHECK(evaluate(rounds(carrying), {{"x", x}, {"b", b}}, {}, options).at("y").values() == std::vector<double>{26});
}

TEST_CASE("calls of rounds and views are written and read") {
    for (const Repeat &repeat : {carrying, Repeat{"T", {{"x", "y"}}, {}, "enough"}, Repeat{"T", {}, {"y", "enough"}}}) {
        const Algorithm a = rounds(repeat), back = algorithm_from_json(to_json(a));
        CHECK(to_text(back) == to_text(a));
        CHECK(semantic_hash(back) == semantic_hash(a));
        CHECK(back.calls()[0].repeat == a.calls()[0].repeat);
    }
    CHECK_THAT(to_text(rounds(carrying)),
               Catch::Contains("call step = step(N = N, b = b[T, %0], x = x) with enough as enough, y as y for each "
                               "T, carrying x = y, stacking enough"));
    CHECK(semantic_hash(rounds(carrying)) != semantic_hash(rounds({"T", {{"x", "y"}}, {"y", "enough"}})));
}

TEST_CASE("an index is affine in axes, or it is not") {
    const Expr n = extent("N");
    const auto parts = affine(axis(0) * n * 2 + axis(1) + n + 3, 2);
    REQUIRE(parts);
    CHECK(equal(parts->first, n + 3));
    CHECK(to_string(parts->steps[0]) == to_string(n * 2));
    CHECK(parts->steps[1].is_constant(1));
    CHECK(affine(Expr(7), 0)->first.is_constant(7));
    for (const Expr &e : {axis(0) * axis(1), axis(0) * axis(0), axis(0) / Expr(2), axis(0) % n, axis(2), min(axis(0), Expr(3))})
        CHECK(!affine(e, 2));
}

// The algorithm with its call changed.
static void refused(const std::function<void(Algorithm &, Call &)> &change, const std::string &words) {
    Algorithm a = rounds(carrying);
    change(a, a.calls()[0]);
    check_words([&] { verify(a); }, {words});
}

TEST_CASE("what no call may repeat") {
    refused([](Algorithm &, Call &c) { c.repeat->dim = "U"; },
            "error[algorithm.unknown-dim]: rounds.step: there is no dim 'U'; the dims are");
    refused([](Algorithm &, Call &c) { c.repeat->stacked = {"z"}; },
            "error[algorithm.call]: rounds.step: it stacks 'z', which is no output of step; the outputs are y, enough.");
    refused([](Algorithm &, Call &c) { c.repeat->carried = {{"x", "z"}}; }, "it carries 'x' from 'z', which is no output of step;");
    refused(
        [](Algorithm &, Call &c) {
            c.repeat->carried = {{"z", "y"}};
        },
        "it carries 'z', which is no input of step; the inputs are x, b.");
    refused(
        [](Algorithm &, Call &c) {
            c.repeat->carried = {{"x", "enough"}};
        },
        "it carries 'x' of type f32 and the dims [N] as 'enough', which has bool and [none]; expected the same.");
    refused(
        [](Algorithm &, Call &c) {
            c.repeat->carried = {{"b", "y"}};
        },
        "it carries 'b', whose first value depends on the repetition 'T'; expected an index without it.");
    refused([](Algorithm &, Call &c) { c.repeat->stacked.clear(), c.repeat->until = "y"; },
            "it stops early by 'y' of type f32 and the dims [N]; expected one bool.");
    refused([](Algorithm &, Call &c) { c.repeat->until = "enough"; },
            "it stops early by 'enough' and stacks 'enough': a repeated call cannot both stop early and stack a result,");
    refused([](Algorithm &, Call &c) { c.repeat->carried.clear(); },
            "without any repetition its output 'y' would have no value, and 'T' is not known to be at least 1; constrain it, or carry or "
            "stack that "
            "output.");
}

TEST_CASE("what is no view") {
    auto view = [](const std::string &tensor, std::vector<Expr> index) {
        return [=](Algorithm &, Call &c) { c.tensors["b"] = View(tensor, index); };
    };
    const Expr t = variable("T");
    refused(view("b", {t}), "which has 2 axes, at 1 indices; expected one for each of T, N.");
    refused(view("b", {t, axis(0) / Expr(2)}), "where index 1, %0/2, is not affine in its 1 axes; make a stage of it, and bind that.");
    refused(view("b", {t, axis(0) + 1}), "where index 1, %0 + 1, is not known to be below the extent of 'N'.");
    refused(view("b", {t - 1, axis(0)}), "where index 0, T - 1, is not known to be at least 0.");
    refused(view("b", {t, axis(1)}), "is not affine in its 1 axes");
    refused(view("b", {variable("N"), axis(0)}), "error[algorithm.");
    refused(view("b", {cast(DType::i32, t), axis(0)}), "is no position.");
    refused([](Algorithm &, Call &c) { c.repeat.reset(); }, "error[algorithm.");  // the round's index is of no round
}

TEST_CASE("a state is written in one way, and its view has each element once") {
    Builder g("keep");
    const Dim N = g.dim("N");
    const Tile s = g.state("s", {N}), x = g.input("x", {N});
    g.update("add", s, {g.index(N)}, s + x);
    const Algorithm keep = g.build();
    Builder f("all");
    const Dim T = f.dim("T"), M = f.dim("N");
    const Tile states = f.state("states", {T, M});
    f.repeat("keep", keep, {"T"}, {states, f.input("x", {M})});
    Algorithm a = f.build();
    const Array more(DType::f32, {2}, {1, 2}), before(DType::f32, {3, 2}, {0, 0, 10, 10, 20, 20});
    CHECK(evaluate(a, {{"states", before}, {"x", more}}).at("states").values() == std::vector<double>{1, 2, 11, 12, 21, 22});
    a.calls()[0].tensors["s"] = View("states", {variable("T"), Expr(0) * axis(0)});
    check_words([&] { verify(a); }, {"is bound to 'states', a state, whose axis 0 moves nothing; expected a box of it."});
    a.calls()[0].tensors["s"] = View("states", {variable("T"), axis(0)});
    a.calls()[0].tensors["x"] = View("states", {Expr(0), axis(0)});
    check_words([&] { verify(a); }, {"'s' of keep, a state, and 'x' are bound to 'states' in different ways;"});
}

}  // namespace tessera::test_repeat

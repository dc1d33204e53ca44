#include "algorithms/build/builder.h"

#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/text/print.h"
#include "support/text/error.h"

namespace tessera::test_builder {

static std::string words(const std::function<void()> &action) {
    try {
        action();
    } catch (const UserError &e) { return e.words(); }
    return "accepted";
}

TEST_CASE("a stage that others read is an output by its own name, without a copy") {
    Builder f("both");
    const Dim M = f.dim("M");
    const Tile kept = exp(f.input("x", {M})).named("kept");
    f.output("kept", kept).output("y", kept + 1.0);
    const Algorithm made = f.build();
    CHECK(made.outputs == std::vector<std::string>{"kept", "y"});
    CHECK(made.steps.size() == 2);
}

TEST_CASE("builder: ids of segments say where one begins, from either end") {
    auto text = [](ScanDirection direction) {
        Builder f("packed");
        Dim M = f.dim("M"), N = f.dim("N");
        Tile x = f.input("x", {M, N}), id = f.input("id", {N}, DType::i32);
        std::string all = to_text(f.output("y", f.scan(sum_monoid(DType::f32), x, N, true, direction, id)).build());
        size_t at = all.find("  y[");
        return all.substr(at, all.find("  outputs") - at);
    };
    CHECK(text(ScanDirection::forward) ==
          "  y[M, N]: f32 = inclusive scan of sum along N of (x[M, N]) anew where not(1 <= N) | (id[N] != load_or(id[N - 1], 1 <= N, "
          "0:i32))\n");
    CHECK(text(ScanDirection::backward) ==
          "  y[M, N]: f32 = inclusive scan of sum backward along N of (x[M, N]) anew where not($0) | (id[N] != load_or(id[N + 1], $0, "
          "0:i32))\n"
          "    $0 = N + 1 < |N|\n");
}

TEST_CASE("builder: segments of a scan are of its dims, and bool or integers") {
    Builder f("scans");
    Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    Tile x = f.input("x", {M, N}), w = f.input("w", {K}), b = f.input("b", {N});
    auto scan = [&](const Tile &segments) {
        return words([&] { f.scan(sum_monoid(DType::f32), x, N, true, ScanDirection::forward, segments); });
    };
    CHECK(scan(w < f.scalar(DType::f32, 0)) ==
          "error[shape.scan]: scans: the segments w[K] < 0.0[K] of a scan have the dim 'K', which x[M, N] lacks; broadcast the scanned "
          "tile.");
    CHECK(scan(b) ==
          "error[shape.type]: scans: the segments b[N] of a scan are f32; give bool (an element begins a segment) or integers (its "
          "segment's id).");
    CHECK(scan(b < f.scalar(DType::f32, 0)) == "accepted");
    CHECK(words([&] { f.scan(sum_monoid(DType::f32), x, K); }) ==
          "error[shape.fold]: scans: a scan along 'K' needs that dim; x[M, N] has M, N.");
}

TEST_CASE("builder: mistakes of a first hour say what they are") {
    Builder f("f");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), none;
    CHECK(words([&] { none * 2.0; }) ==
          "error[algorithm.tile]: a tile that no builder made is used; expected one of a Builder, such as an input, or a result of tile "
          "functions.");
    CHECK(words([&] { x + Tile(&f, Expr(), {"M"}); }) ==
          "error[algorithm.tile]: a tile without a value, an undefined expression, is used; expected one of a Builder, such as an input, "
          "or a result of tile functions.");
    CHECK(words([&] { f.output("y", none); }).starts_with("error[algorithm.tile]: "));
    CHECK(words([&] { f.scatter(sum_monoid(DType::f32), x, {}, {f.dim("K")}); }) ==
          "error[algorithm.scatter]: f: scatter of x[M, N] has 0 positions for a result of 1 dims; expected one for each of K.");
    CHECK(words([&] { cast(DType::f64, x, Rounding::toward_zero); }) ==
          "error[expr.cast]: a cast to f64 rounds to nearest even and overflows to infinity; got rounding toward_zero, which is for "
          "integers and for floats that are only stored. Leave it out.");
    CHECK(words([&] { cast(DType::f64, x, Rounding::nearest_even, true); }) ==
          "error[expr.cast]: a cast to f64 rounds to nearest even and overflows to infinity; got saturation, which is for integers and for "
          "floats that are only stored. Leave it out.");
    softmax(x, N);
    CHECK(words([&] { softmax(x, N); }) ==
          "error[algorithm.name]: f: there is already a stage or tensor 'max'; choose another name, or hold a scope() while one of the two "
          "is made, if tile functions name their stages.");
    const auto second = f.scope("second");
    CHECK(softmax(x, N).dims() == std::vector<std::string>{"M", "N"});
}

TEST_CASE("builder: an update is seen by what is not named before") {
    Builder f("f");
    const Dim M = f.dim("M");
    const Tile s = f.state("s", {M}), x = f.input("x", {M});
    const Tile expression = s * 2.0, kept = (s * 2.0).named("kept");
    f.update("put", s, {f.index(M)}, x);
    f.output("seen", expression), f.output("old", kept);
    const Algorithm a = f.build();
    std::map<std::string, Array> result = evaluate(a, {{"s", Array(DType::f32, {1}, {3})}, {"x", Array(DType::f32, {1}, {5})}}, {});
    CHECK(result.at("seen").values() == std::vector<double>{10});
    CHECK(result.at("old").values() == std::vector<double>{6});
}

TEST_CASE("builder: a donated input becomes the result in place") {
    Builder f("f");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N});
    f.output_in_place(x, softmax(x, N));
    const Algorithm a = f.build();
    REQUIRE(a.tensors.size() == 1);
    CHECK(a.tensors[0].role == Role::state);
    CHECK(a.outputs.empty());
    Builder g("g");
    const Tile u = g.input("u", {g.dim("M"), g.dim("N")});
    g.output("y", softmax(u, g.dim_named("N")));
    const Array data(DType::f32, {2, 3}, {1, 2, 3, 5, 8, 13});
    CHECK(evaluate(a, {{"x", data}}, {}).at("x") == evaluate(g.build(), {{"u", data}}, {}).at("y"));
}

TEST_CASE("builder: what reads other elements of a donated input is finished before the first is written") {
    Builder f("f");
    const Dim M = f.dim("M");
    const Tile x = f.input("x", {M});
    const Tile before = x * 2.0;
    f.output_in_place(x, x.at({{"M", extent("M") - 1 - variable("M")}}, {"M"}) + x);
    f.output("after", x), f.output("doubled", before);  // an expression of x, read where it is used
    const std::map<std::string, Array> result = evaluate(f.build(), {{"x", Array(DType::f32, {3}, {1, 2, 5})}}, {});
    CHECK(result.at("x").values() == std::vector<double>{6, 4, 6});
    CHECK(result.at("after").values() == std::vector<double>{6, 4, 6});
    CHECK(result.at("doubled").values() == std::vector<double>{12, 8, 12});
}

TEST_CASE("builder: what cannot be donated is said") {
    Builder f("f");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M}), w = f.input("w", {M, N});
    CHECK(words([&] { f.output_in_place(x + 1.0, x); }) ==
          "error[algorithm.donate]: f: x[M] + 1.0[M] is no input as a whole; expected a tile that input() gave.");
    CHECK(words([&] { f.output_in_place(x, w); }) ==
          "error[algorithm.donate]: f: the memory of 'x' was to become w[M, N]; expected a value over its dims M.");
    f.output_in_place(x, x + 1.0);
    CHECK_THAT(words([&] { f.output_in_place(x, x); }), Catch::Contains("x[M] is no input as a whole"));
}

// What a tile means is its expression and its dims, whether it is an output, has got a name, or is given to a call.
TEST_CASE("builder: a tile that is read at other indices keeps them when it gets a name, is an output or goes to a call") {
    Builder copy("copy");
    Tile in = copy.input("in", {copy.dim("A"), copy.dim("B")});
    const Algorithm callee = copy.output("out", in).build();
    const Array data(DType::f32, {2, 3}, {1, 2, 3, 5, 8, 13});
    using Change = std::function<Tile(const Tile &)>;
    const std::map<std::string, Change> changes = {
        {"as it is", [](const Tile &t) { return t; }},
        {"backwards",
         [](const Tile &t) {
             return t.at({{"N", extent("N") - 1 - variable("N")}}, {"M", "N"});
         }},
        {"transposed", [](const Tile &t) { return transpose(t); }},
        {"one row",
         [](const Tile &t) {
             return broadcast(t.at({{"M", Expr(0)}}, {"N"}), {symbolic_dim("M"), symbolic_dim("N")});
         }},
        {"guarded", [](const Tile &t) {
             const Expr v = t.value(), row = variable("M"), at = load(v->name, v.type(), {row, variable("N")});
             return t.builder().tile(read_where(at, Expr(1) <= row), {symbolic_dim("M"), symbolic_dim("N")});
         }}};
    for (const auto &[change, changed] : changes)
        for (bool folded : {false, true}) {
            auto result = [&](const Change &use) {
                Builder f("use");
                Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K", 1);
                Tile x = f.input("x", {M, N, K});
                Tile t = folded ? sum(x, K) : (x.at({{"K", Expr(0)}}, {"M", "N"}) + 0.0).named("stage");  // (M, N)
                const Algorithm a = f.output("y", use(changed(t))).build();
                return evaluate(a, {{"x", Array(DType::f32, {2, 3, 1}, data.values())}}).at("y");
            };
            const Array expected = result([](const Tile &t) { return t * 1.0; });
            INFO(change << (folded ? " of a fold" : " of a stage"));
            CHECK(result([](const Tile &t) { return t; }) == expected);
            CHECK(result([](const Tile &t) { return t.named("name"); }) == expected);
            CHECK(result([&](const Tile &t) { return t.builder().call("called", callee, {t})[0]; }) == expected);
        }
}

TEST_CASE("builder: positions among the operands of a fold are no stages") {
    Builder f("f");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N}), id = f.input("id", {N}, DType::i64);
    auto position_of = [&](const Tile &position) {
        const size_t before = f.algorithm().stages().size();
        f.fold(argmax_monoid(DType::f32), {x, position}, {"N"});
        const auto stages = f.algorithm().stages();
        return std::to_string(stages.size() - before) + " " + to_string(inputs_of(stages.back())[1]);
    };
    CHECK(position_of(cast(DType::i64, f.index(N))) == "1 i64(N)");
    CHECK(position_of(f.tile(cast(DType::i64, variable("N") * Expr(2) % extent("N")), {N})) == "1 i64(N*2%|N|)");
    CHECK(position_of(id) == "1 id[N]");
    // What is read or rounded is computed once for each point of its dims.
    CHECK(position_of(id + id) == "2 argmax_operand[N]");
    CHECK(position_of(cast(DType::i64, exp(cast(DType::f32, f.index(N))))) == "2 argmax_operand2[N]");
    // One that has a name is a stage that may be scheduled.
    CHECK(position_of(cast(DType::i64, f.index(N)).named("position")) == "1 position[N]");
}

TEST_CASE("builder: a scan and a scatter by a monoid of several parts give all of them, or are refused") {
    const Monoid best = argmax_monoid(DType::f32);
    Builder f("f");
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {M, N}), position = cast(DType::i64, f.index(N)), to = f.input("to", {M, N}, DType::i32);
    const std::vector<Tile> parts = f.scan_parts(best, {x, position}, N), kept = f.scatter_parts(best, {x, position}, {to}, {K});
    REQUIRE(parts.size() == 2);
    REQUIRE(kept.size() == 2);
    f.output("value", parts[0]).output("position", parts[1], DType::i64);
    f.output("kept", kept[0]).output("from", kept[1], DType::i64);
    const Algorithm algorithm = f.build();
    const auto results =
        evaluate(algorithm, {{"x", Array(DType::f32, {1, 5}, {1, 3, 2, 3, 4})}, {"to", Array(DType::i32, {1, 5}, {1, 0, 1, 0, 5})}}, {},
                 EvaluationOptions{Precision::policy, {{"K", 2}}, false});
    CHECK(results.at("value").values() == std::vector<double>{1, 3, 3, 3, 4});
    CHECK(results.at("position").values() == std::vector<double>{0, 1, 1, 1, 4});
    CHECK(results.at("kept").values() == std::vector<double>{3, 2});
    CHECK(results.at("from").values() == std::vector<double>{1, 2});

    Monoid pair = sum_monoid(DType::f32);
    pair.name = "pair", pair.parts.push_back(pair.parts[0]), pair.parts[1].name = "again";
    for (auto *list : {&pair.lift, &pair.combine, &pair.step}) list->push_back((*list)[0]);
    CHECK(
        words([&] { f.scan(pair, x, N); }) ==
        "error[algorithm.parts]: f: scan by 'pair': expected a monoid of one part, got 2: value, again; scan_parts gives a tile for each.");
    CHECK(
        words([&] { f.scatter(pair, x, {to}, {K}); }) ==
        "error[algorithm.parts]: f: scatter by 'pair': expected a monoid of one part, got 2: value, again; scatter_parts gives a tile for "
        "each.");
    CHECK(words([&] { f.scan_parts(best, {x}, N); }) == "error[shape.type]: f: argmax wants operand 1 as i64, got nothing; it takes 2.");
    CHECK(words([&] {
              f.scan_parts(sum_monoid(DType::f32), {x, x}, N);
          }) == "error[shape.type]: f: sum wants operand 1 as nothing, got f32 x[M, N]; it takes 1.");
}

TEST_CASE("builder: a dim is found by its name") {
    Builder f("f");
    const Dim M = f.dim("M", 4);
    CHECK(f.dim_named("M").value == 4);
    CHECK(words([&] { f.dim_named("MM"); }) ==
          "error[algorithm.unknown-dim]: f: there is no dim 'MM'; the dims are M. Did you mean 'M'? dim(\"MM\") declares one.");
}

}  // namespace tessera::test_builder

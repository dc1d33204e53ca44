// Derivatives of calls that repeat: against differences, against the same rounds written out, and the adjoint against what it transposes.
#include <catch2/catch.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/library/library.h"
#include "algorithms/text/print.h"
#include "support/text/error.h"
#include "tests/algorithms/derivative_laws.h"

namespace tessera::test_derivatives_of_repeats {

using namespace tessera::test;

namespace {

const Numerics f32 = numerics_named("f32"), f64 = numerics_named("f64");

void check(const Algorithm &f, const Extents &extents, const By &by = {}) {
    std::mt19937 random(11);
    INFO(to_text(f));
    const Given given = random_given(f, extents, random);
    INFO(to_text(jvp(f, by)));
    INFO(to_text(vjp(f, by)));
    const auto forward = error_of_jvp(f, by, given, random);
    REQUIRE(forward);
    CHECK(*forward < 1e-6);
    CHECK(error_of_vjp(f, by, given, random) < 1e-12);
}

struct Dims {
    Dim M, D, E;
    explicit Dims(Builder &f) : M(f.dim("M")), D(f.dim("D")), E(f.dim(derived_dim("E", extent("D")))) {}
};

// y = s tanh(x w + b) + x g, and how long each row of it is.
Algorithm layer(const Numerics &n) {
    Builder f("layer", n);
    const Dims d(f);
    const Tile x = f.input("x", {d.M, d.D}), w = f.input("w", {d.D, d.E}), b = f.input("b", {d.D}), g = f.input("g", {d.D}),
               s = f.input("s", {});
    const Tile product = dot(x, w).named("acc").at({{"E", variable("D")}}, {"M", "D"});
    const Tile y = (s * tanh(product + b) + x * g).named("both");
    return f.output("y", y).output("length", sum(y * y, d.D)).build();
}

// Layers with weights of their own (w, b, and s from a table) and weights that all share (g).
Algorithm layers(const Numerics &n, std::optional<int64_t> number, bool written_out, bool with_lengths, int64_t multiple_of = 1) {
    Builder f("layers", n);
    const Dims d(f);
    Dim open = symbolic_dim("L");
    open.multiple_of = multiple_of;
    const Dim L = number ? f.dim("L", *number) : f.dim(open);
    Tile x = f.input("x", {d.M, d.D});
    const Tile w = f.input("w", {L, d.D, d.E}), b = f.input("b", {L, d.D}), g = f.input("g", {d.D});
    const Tile s = number ? f.constant("s", {L}, std::vector<double>(static_cast<size_t>(*number), 0.75)) : f.input("s", {L});
    if (!written_out) {
        const Repeat rounds{"L", {{"x", "y"}}, with_lengths ? std::set<std::string>{"length"} : std::set<std::string>{"y", "length"}, ""};
        const std::vector<Tile> made = f.repeat("layer", layer(n), rounds, {x, w, b, g, s});
        f.output("y", with_lengths ? made[0] : made[0] * 1.0);
        if (with_lengths) f.output("length", made[1]);
        return f.build();
    }
    for (int64_t l = 0; l < *number; l++) {
        const auto one = [&](const Tile &all, const std::vector<std::string> &dims) { return all.at({{"L", Expr(l)}}, dims); };
        x = f.call("layer" + std::to_string(l), layer(n), {x, one(w, {"D", "E"}), one(b, {"D"}), g, one(s, {})})[0];
    }
    return f.output("y", x).build();
}

}  // namespace

TEST_CASE("derivatives of rounds: what is carried, stacked, shared and a round's own") {
    for (const int64_t rounds : {0, 1, 2, 3}) {
        INFO(rounds << " rounds");
        check(layers(f64, {}, false, true), {{"M", 2}, {"D", 3}, {"L", rounds}});   // the last y, and all lengths
        check(layers(f64, {}, false, false), {{"M", 2}, {"D", 3}, {"L", rounds}});  // each y
        check(layers(f64, {}, false, true), {{"M", 2}, {"D", 3}, {"L", rounds}}, {{"g"}, {"length"}});
        check(layers(f64, {}, false, true), {{"M", 2}, {"D", 3}, {"L", rounds}}, {{"x", "w"}, {"y"}});
    }
    check(layers(f64, 3, false, true), {{"M", 2}, {"D", 3}});
}

TEST_CASE("derivatives of rounds: bits of the same rounds written out") {
    const By by{{"x", "w", "b", "g"}, {"y"}};
    const Algorithm rolled = vjp(layers(f32, 3, false, true), by), written = vjp(layers(f32, 3, true, true), by);
    CHECK(rolled.calls().size() == 2);
    std::mt19937 random(5);
    Given given = random_given(written, {{"M", 2}, {"D", 3}}, random);
    EvaluationOptions options;
    options.extents = given.extents;
    const auto a = evaluate(rolled, given.tensors, {}, options), b = evaluate(written, given.tensors, {}, options);
    for (const std::string &name : by.by) {
        INFO(name);
        CHECK(a.at(name + ".grad").values() == b.at(name + ".grad").values());
    }
}

TEST_CASE("derivatives of rounds: one derivative for all rounds, and nothing that nobody reads") {
    const Algorithm g = vjp(layers(f64, {}, false, true), {{"w"}, {"y"}});
    INFO(to_text(g));
    REQUIRE(g.calls().size() == 2);
    const Call &forward = g.calls()[0], &backward = g.calls()[1];
    CHECK(forward.scope == "layer");
    CHECK(forward.repeat->stacked == std::set<std::string>{"x.before"});
    CHECK(backward.scope == "layer.grad");
    CHECK(backward.callee->outputs == std::vector<std::string>{"x.grad", "w.grad"});
    CHECK(!backward.callee->find_tensor("length.grad"));
}

TEST_CASE("derivatives of rounds: rounds within rounds, and rounds that only stack") {
    Builder f("nested", f64);
    const Dims d(f);
    const Dim L = f.dim("L"), K = f.dim("K");
    // Each outer round goes through K layers that all outer rounds share but for b.
    Builder inner("some", f64);
    const Dims e(inner);
    const Dim K_of = inner.dim("K");
    const std::vector<Tile> made = inner.repeat("each", layer(f64), {"K", {{"x", "y"}}, {"length"}, ""},
                                                {inner.input("x", {e.M, e.D}), inner.input("w", {K_of, e.D, e.E}), inner.input("b", {e.D}),
                                                 inner.input("g", {e.D}), inner.input("s", {K_of})});
    const Algorithm some = inner.output("y", made[0]).output("length", made[1]).build();
    const std::vector<Tile> all = f.repeat(
        "outer", some, {"L", {{"x", "y"}}, {"length"}, ""},
        {f.input("x", {d.M, d.D}), f.input("w", {K, d.D, d.E}), f.input("b", {L, d.D}), f.input("g", {d.D}), f.input("s", {L, K})});
    const Algorithm nested = f.output("y", all[0]).output("length", all[1]).build();
    for (const int64_t outer : {0, 1, 2})
        for (const int64_t within : {0, 1, 3}) check(nested, {{"M", 2}, {"D", 2}, {"L", outer}, {"K", within}});

    Builder rows("rows", f64);
    const Dims r(rows);
    const Dim B = rows.dim("B");
    const std::vector<Tile> apart = rows.repeat("layer", layer(f64), {"B", {}, {"y", "length"}, ""},
                                                {rows.input("x", {B, r.M, r.D}), rows.input("w", {r.D, r.E}), rows.input("b", {r.D}),
                                                 rows.input("g", {B, r.D}), rows.input("s", {})});
    const Algorithm batch = rows.output("y", apart[0]).output("length", apart[1]).build();
    for (const int64_t b : {0, 1, 3}) check(batch, {{"M", 2}, {"D", 2}, {"B", b}});
}

TEST_CASE("derivatives of rounds: parameters of a round, and views of joined axes") {
    Builder s("step", f64);
    const Dim N = s.dim("N");
    const Tile v = s.input("v", {N});
    const Algorithm step = s.output("next", v * s.parameter("rate", DType::f64) + 0.5 * v * v).build();
    Builder f("steps", f64);
    const Dim T = f.dim("T"), M = f.dim("N");
    const Tile rates = f.input("rates", {T}), all = f.parameter("all", DType::f64);
    f.output("y", f.repeat("step", step, {"T", {{"v", "next"}}, {}, ""}, {f.input("v", {M})}, {{"rate", sin(rates) * all}})[0]);
    const Algorithm steps = f.build();
    for (const int64_t t : {0, 1, 4}) check(steps, {{"T", t}, {"N", 3}}, {{"v", "rates", "all"}, {}});

    const Options two = complete_options("", library::encoder_options(), {{"heads", 2}});
    Extents extents = {{"B", 2}, {"T", 3}, {"D", 4}, {"F", 3}};
    check(library::encoder_layer(f64, two), extents);
    extents["L"] = 2;
    check(library::encoder(f64, two), extents);
}

TEST_CASE("derivatives of rounds: they have derivatives, and adjoints of what is linear") {
    const Algorithm g = vjp(layers(f64, {}, false, true), {{"x", "w"}, {"y"}});
    std::mt19937 random(2);
    const Given given = random_given(g, {{"M", 2}, {"D", 2}, {"L", 2}}, random);
    const By by{{"x", "w", "y.grad"}, {}};
    const auto error = error_of_jvp(g, by, given, random);
    REQUIRE(error);
    CHECK(*error < 1e-6);
    CHECK(error_of_vjp(g, by, given, random) < 1e-12);

    Builder s("decay", f64);
    const Dim N = s.dim("N");
    const Tile before = s.input("before", {N}), factor = s.input("a", {N}), added = s.input("x", {N});
    const Algorithm step = s.output("h", before * factor + added).build();
    Builder f("recurrence", f64);
    const Dim T = f.dim("T"), M = f.dim("N");
    const Tile start = f.input("start", {M}), a = f.input("a", {T, M}), x = f.input("x", {T, M});
    const Algorithm all = f.output("h", f.repeat("step", step, {"T", {{"before", "h"}}, {"h"}, ""}, {start, a, x})[0]).build();
    const Algorithm adjoint = transpose(all, {"start", "x"});
    CHECK(adjoint.outputs == std::vector<std::string>{"start.grad", "x.grad"});
    CHECK(adjoint.calls().size() == 1);  // the rounds forward give it nothing
    const Given some = random_given(all, {{"T", 3}, {"N", 2}}, random);
    CHECK(error_of_vjp(all, {{"start", "x"}, {}}, some, random, adjoint) < 1e-12);
    for (const std::vector<std::string> &names : {std::vector<std::string>{"x"}, {"a", "start"}}) {
        try {
            transpose(all, names);
            FAIL("it is not linear");
        } catch (const UserError &e) { CHECK(e.id() == "derivative.linear"); }
    }
}

namespace {

// Equal bits of all outputs of two algorithms.
void check_equal(const Algorithm &a, const Algorithm &b, const Extents &extents) {
    INFO(to_text(a));
    INFO(to_text(b));
    std::mt19937 random(6);
    const Given given = random_given(a, extents, random);
    EvaluationOptions options;
    options.extents = extents;
    const auto left = evaluate(a, given.tensors, {}, options), right = evaluate(b, given.tensors, {}, options);
    CHECK(left.size() == right.size());
    for (const auto &[name, value] : left) {
        INFO(name);
        CHECK(right.at(name).data == value.data);
    }
}

}  // namespace

TEST_CASE("derivatives of rounds: what is saved is what is computed again, bit for bit") {
    const By again{{"x", "w", "g"}, {"y", "length"}, {}};
    const Algorithm f = layers(f32, {}, false, true);
    for (const std::string pattern : {"layer.*", "layer.acc", "*", "layer.both", "l*.length"}) {
        By saved = again;
        saved.residuals.choices = {{pattern, true}};
        const Algorithm g = vjp(f, saved);
        for (const int64_t rounds : {0, 1, 3}) check_equal(vjp(f, again), g, {{"M", 2}, {"D", 3}, {"L", rounds}});
        const bool has_product = pattern != "layer.both" && pattern != "l*.length";
        if (!has_product) continue;
        CHECK(!g.calls()[1].callee->find_stage("acc"));
        CHECK(g.calls()[0].repeat->stacked.count("acc"));
    }
    By no_product = again;
    no_product.residuals.choices = {{"layer.acc", false}, {"*", true}};
    const Algorithm without = vjp(f, no_product);
    CHECK(without.calls()[1].callee->find_stage("acc"));
}

TEST_CASE("derivatives of rounds: groups give the same bits, and so do their gradients") {
    const By by{{"x", "w", "b", "g"}, {"y", "length"}};
    for (const int64_t rounds : {0, 3, 6}) {
        const Extents extents = {{"M", 2}, {"D", 2}, {"L", rounds}};
        const Algorithm f = layers(f32, {}, false, true, 3), grouped = checkpoint(f, "layer", 3);
        check_equal(f, grouped, extents);
        check_equal(vjp(f, by), vjp(grouped, by), extents);
        check(checkpoint(layers(f64, {}, false, true, 3), "layer", 3), extents);
    }
    for (const int64_t rounds : {2, 6, 7}) {
        const Extents extents = {{"M", 2}, {"D", 2}};
        const Algorithm f = layers(f32, rounds, false, true), grouped = checkpoint(f, "layer", 2);
        CHECK(grouped.calls().size() == (rounds % 2 ? 2 : 1));
        check_equal(f, grouped, extents);
        check_equal(vjp(f, by), vjp(grouped, by), extents);
    }
    // The callee does not know that its dims D and E have one extent.
    Builder s("square", f32);
    const Dim M = s.dim("M"), D = s.dim("D"), E = s.dim("E");
    const Tile into = s.input("x", {M, D});
    const Algorithm square = s.output("y", tanh(dot(into, s.input("w", {D, E})))).build();
    Builder stack("stack", f32);
    const Dim rows = stack.dim("M"), wide = stack.dim("D", 2), as_wide = stack.dim("E", 2), L = stack.dim("L", 5);
    const Tile x = stack.input("x", {rows, wide}), w = stack.input("w", {L, wide, as_wide});
    const Algorithm squares = stack.output("y", stack.repeat("layer", square, {"L", {{"x", "y"}}, {}, ""}, {x, w})[0]).build();
    check_equal(vjp(squares), vjp(checkpoint(squares, "layer", 2)), {{"M", 3}});

    const auto refusal = [](const Algorithm &f, const std::string &scope, int64_t every) {
        try {
            checkpoint(f, scope, every);
        } catch (const UserError &e) { return e.id() + " " + e.message(); }
        return std::string("none");
    };
    const Algorithm f = layers(f32, {}, false, true);
    CHECK_THAT(refusal(f, "layers", 2),
               Catch::StartsWith(
                   "checkpoint.unknown layers: 'layers' is no call that repeats, so it has no rounds to put in groups; there are layer."));
    CHECK_THAT(refusal(f, "layer", 2),
               Catch::StartsWith("checkpoint.rounds layers.layer: the extent of 'L' is not known to be a multiple"));
    CHECK_THAT(refusal(f, "layer", 0), Catch::StartsWith("checkpoint.every layers: groups of 0 rounds"));
    CHECK_THAT(refusal(layers(f32, {}, false, false, 2), "layer", 2),
               Catch::StartsWith("checkpoint.rounds layers.layer: it stacks 'y', which it carries too"));
}

TEST_CASE("derivatives of rounds: what stops early has tangents, and no gradient") {
    Builder s("step", f32);
    const Dim N = s.dim("N");
    const Tile next = (s.input("v", {N}) * 1.5).named("more");
    const Algorithm step = s.output("next", next).output("enough", max(next, N) >= 4.0, DType::boolean).build();
    Builder f("steps", f32);
    const Dim T = f.dim("T"), M = f.dim("N");
    const Algorithm steps = f.output("y", f.repeat("step", step, {"T", {{"v", "next"}}, {}, "enough"}, {f.input("v", {M})})[0]).build();
    const Array v(DType::f32, {2}, {1, 2}), tangent(DType::f32, {2}, {1, 0});
    EvaluationOptions options;
    options.extents = {{"T", 9}, {"N", 2}};
    const auto made = evaluate(jvp(steps), {{"v", v}, {"v.tangent", tangent}}, {}, options);
    CHECK(made.at("y").values() == std::vector<double>{2.25, 4.5});
    CHECK(made.at("y.tangent").values() == std::vector<double>{2.25, 0});
    try {
        vjp(steps);
        FAIL("its rounds are not known");
    } catch (const UserError &e) {
        CHECK(e.id() == "derivative.until");
        CHECK_THAT(e.message(), Catch::StartsWith("steps.step: it stops early by 'enough'"));
    }
}

}  // namespace tessera::test_derivatives_of_repeats

// Derivatives that authors state: as those of stages where they say the same, in their place where they say another, refused where they fit
// nothing.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/rule_laws.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/as_a_call.h"
#include "algorithms/transform/vmap/vmap.h"
#include "support/text/error.h"
#include "tests/algorithms/derivative_laws.h"

namespace tessera::test_derivative_rules {

using namespace tessera::test;

namespace {

const Numerics f32 = numerics_named("f32"), f64 = numerics_named("f64"), bf16 = numerics_named("bf16");

std::shared_ptr<const Algorithm> shared(Algorithm a) { return std::make_shared<const Algorithm>(std::move(a)); }

// y = log(1 + exp(x)), which is inf from x = 89 on.
Algorithm log1pexp(const Numerics &n) {
    Builder f("log1pexp", n);
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N});
    return f.output("y", log(exp(x) + 1.0)).build();
}

// x.grad = y.grad (1 - 1 / (1 + exp(x))), which is a number for all x.
Algorithm log1pexp_backward(const Numerics &n, double factor = 1) {
    Builder f("log1pexp_backward", n);
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), g = f.input("y.grad", {N});
    return f.output("x.grad", g * factor * (1.0 - 1.0 / (exp(x) + 1.0))).build();
}

Algorithm log1pexp_jvp(const Numerics &n) {
    Builder f("log1pexp_jvp", n);
    const Dim N = f.dim("N");
    const Tile x = f.input("x", {N}), v = f.input("x.tangent", {N});
    return f.output("y.tangent", v * (1.0 - 1.0 / (exp(x) + 1.0))).build();
}

// y = a tanh(x w): a rule with what forward leaves, a parameter with a derivative, and an input (a mask) without one.
Algorithm gate(const Numerics &n) {
    Builder f("gate", n);
    const Dim M = f.dim("M"), K = f.dim("K"), J = f.dim("J");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, J}), mask = f.input("mask", {J}, DType::i32),
               a = f.parameter("a", DType::f32);
    return f.output("y", a * tanh(dot(x, w)) * cast(DType::f32, mask)).build();
}
Algorithm gate_forward(const Numerics &n) {
    Builder f("gate_forward", n);
    const Dim M = f.dim("M"), K = f.dim("K"), J = f.dim("J");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, J}), mask = f.input("mask", {J}, DType::i32),
               a = f.parameter("a", DType::f32);
    const Tile bent = tanh(dot(x, w)).named("bend");
    return f.output("y", a * bent * cast(DType::f32, mask)).output("bent", bent).build();
}
Algorithm gate_backward(const Numerics &n) {
    Builder f("gate_backward", n);
    const Dim M = f.dim("M"), K = f.dim("K"), J = f.dim("J");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, J}), mask = f.input("mask", {J}, DType::i32), bent = f.input("bent", {M, J}),
               g = f.input("y.grad", {M, J}), a = f.parameter("a", DType::f32);
    const Tile masked = (g * cast(DType::f32, mask)).named("masked");
    const Tile inner = (a * masked * (1.0 - bent * bent)).named("inner");
    f.output("x.grad", dot(inner, w, {J})).output("w.grad", dot(x, inner, {M}));
    return f.output("a.grad", sum(sum(masked * bent, J), M)).build();
}

std::vector<double> at(const Algorithm &f, const std::map<std::string, Array> &tensors, const std::string &output) {
    std::map<std::string, Array> taken;
    for (const Tensor &t : f.tensors)
        if (t.role != Role::constant) taken[t.name] = tensors.at(t.name);
    return evaluate(f, taken).at(output).values();
}

Array numbers(const std::vector<double> &values) { return Array(DType::f32, {static_cast<int64_t>(values.size())}, values); }

void check_refused(const Algorithm &f, const DerivativeRule &rule, const std::string &words) {
    try {
        with_rule(f, rule);
        FAIL("not refused: " << words);
    } catch (const UserError &error) {
        CHECK(error.id() == "algorithm.rule");
        CHECK_THAT(error.words(), Catch::Contains(words));
    }
}

}  // namespace

TEST_CASE("rules: a backward pass in place of the stages', at numbers where that of the stages is none") {
    const Algorithm plain = log1pexp(f32), safe = with_rule(plain, {.backward = shared(log1pexp_backward(f32))});
    const std::map<std::string, Array> given = {{"x", numbers({-100, -1, 0, 1, 100})}, {"y.grad", numbers({1, 1, 1, 1, 1})}};
    CHECK(std::isnan(at(vjp(plain), given, "x.grad")[4]));
    // 1 / (1 + exp(-x)). At 100 it is 1, as in the example of the documentation of jax.custom_jvp.
    const std::vector<double> expected = {0, 0.26894143, 0.5, 0.73105854, 1};
    const std::vector<double> got = at(vjp(safe), given, "x.grad");
    for (size_t i = 0; i < expected.size(); i++) CHECK(got[i] == Approx(expected[i]).margin(1e-7));
    CHECK(semantic_hash(plain) == semantic_hash(safe));
    CHECK(at(safe, given, "y") == at(plain, given, "y"));
}

TEST_CASE("rules: one direction is the transpose of the other") {
    std::mt19937 random(3);
    const Algorithm by_backward = with_rule(log1pexp(f32), {.backward = shared(log1pexp_backward(f32))});
    const Algorithm by_jvp = with_rule(log1pexp(f32), {.jvp = shared(log1pexp_jvp(f32))});
    for (const Algorithm &f : {by_backward, by_jvp}) {
        INFO(to_text(f));
        const Given given = random_given(f, {{"N", 5}}, random);
        INFO(to_text(jvp(f)));
        INFO(to_text(vjp(f)));
        const auto error = error_of_jvp(f, {}, given, random);
        REQUIRE(error);
        CHECK(*error < 1e-6);
        CHECK(error_of_vjp(f, {}, given, random) < 1e-12);
        CHECK(!broken_rule_law(f));
    }
    const std::map<std::string, Array> given = {{"x", numbers({100})}, {"y.grad", numbers({2})}, {"x.tangent", numbers({3})}};
    CHECK(at(vjp(by_jvp), given, "x.grad")[0] == 2);
    CHECK(at(jvp(by_backward), given, "y.tangent")[0] == 3);
}

TEST_CASE("rules: of a callee among other stages, with what its forward leaves, a parameter, and a second derivative") {
    const Algorithm callee = with_rule(gate(f32), {.backward = shared(gate_backward(f32)), .forward = shared(gate_forward(f32))});
    CHECK(!broken_rule_law(callee));
    const auto program = [&](const Algorithm &called) {
        Builder f("program", f32);
        const Dim M = f.dim("M"), K = f.dim("K"), J = f.dim("J");
        const Tile x = f.input("x", {M, K}), w = f.input("w", {K, J}), mask = f.input("mask", {J}, DType::i32), s = f.input("s", {});
        const Tile a = f.parameter("a", DType::f32);
        const Tile once = f.call("once", called, {x * s, w, mask}, {{"a", a * 2.0}})[0];
        return f.output("y", once * once).build();
    };
    const Algorithm f = program(callee), stages = program(gate(f32));
    INFO(to_text(vjp(f, {{"x", "w", "s", "a"}})));
    std::mt19937 random(5);
    const Given given = random_given(f, {{"M", 3}, {"K", 4}, {"J", 2}}, random, {}, 2);
    const auto error = error_of_jvp(f, {{"x", "w", "s", "a"}}, given, random);
    REQUIRE(error);
    CHECK(*error < 1e-6);
    CHECK(error_of_vjp(f, {{"x", "w", "s", "a"}}, given, random) < 1e-12);
    const Algorithm gradient = vjp(f, {{"x", "w"}});
    std::mt19937 again(6);
    const Given second = random_given(gradient, {{"M", 3}, {"K", 4}, {"J", 2}}, again, {}, 2);
    const auto error_of_second = error_of_jvp(gradient, {{"x", "w", "y.grad"}}, second, again);
    REQUIRE(error_of_second);
    CHECK(*error_of_second < 1e-6);
    // The stages of backward are there, those of the derivative of the forward part are not.
    const std::string text = to_text(gradient);
    CHECK_THAT(text, Catch::Contains("call once.grad = gate_backward"));
    CHECK_THAT(to_text(vjp(stages, {{"x"}})), !Catch::Contains("gate_backward"));
}

TEST_CASE("rules: views and rounds of a callee with a rule") {
    const Algorithm callee = with_rule(log1pexp(f64), {.backward = shared(log1pexp_backward(f64))});
    Builder f("rounds", f64);
    const Dim L = f.dim("L", 3), N = f.dim("N", 6);
    const Dim H = f.dim(derived_dim("H", Expr(3)));
    const Tile x = f.input("x", {N}), b = f.input("b", {L, N});
    const Tile half = x.at({{"N", variable("H") + 2}}, {"H"});
    const Tile part = f.call("part", callee, {half})[0];
    const Tile all = f.repeat("again", callee, Repeat{"L", {{"x", "y"}}, {}, ""}, {x})[0];
    const Tile each = f.repeat("each", callee, Repeat{"L", {}, {"y"}, ""}, {b})[0];
    const Algorithm made = f.output("y", all).output("z", each * each).output("p", part).build();
    INFO(to_text(vjp(made)));
    std::mt19937 random(7);
    const Given given = random_given(made, {}, random);
    const auto error = error_of_jvp(made, {}, given, random);
    REQUIRE(error);
    CHECK(*error < 1e-6);
    CHECK(error_of_vjp(made, {}, given, random) < 1e-12);
}

TEST_CASE("rules: a gradient that is clipped, and one that is passed straight through") {
    const auto clip = [&](const Numerics &n) {
        Builder f("clip_gradient", n);
        const Dim N = f.dim("N");
        const Tile x = f.input("x", {N});
        return f.output("y", x * 1.0).build();
    };
    Builder b("clipped", f32);
    const Dim N = b.dim("N");
    const Tile g = b.input("y.grad", {N});
    const Algorithm backward = b.output("x.grad", min(max(g, -1.0), 1.0)).build();
    const Algorithm on_purpose = with_rule(clip(f32), {.backward = shared(backward), .differs = true});
    const std::map<std::string, Array> given = {{"x", numbers({1, 2, 3})}, {"y.grad", numbers({-7, 0.25, 3})}};
    CHECK(at(vjp(on_purpose), given, "x.grad") == std::vector<double>{-1, 0.25, 1});
    CHECK(!broken_rule_law(on_purpose));
    CHECK_THROWS_WITH(jvp(on_purpose), Catch::Contains("linear"));
    check_rule_laws(on_purpose);

    Builder r("rounded", f32);
    const Dim M = r.dim("M");
    const Tile x = r.input("x", {M});
    const Algorithm rounded = r.output("y", round(x * 4.0) * 0.25).build();
    CHECK_THROWS_WITH(vjp(rounded), Catch::Contains("derivative.nothing"));
    Builder t("through", f32);
    const Dim K = t.dim("M");
    const Algorithm through = t.output("x.grad", t.input("y.grad", {K}) * 1.0).build();
    const Algorithm quantised = with_rule(rounded, {.backward = shared(through), .differs = true});
    CHECK(at(vjp(quantised), given, "x.grad") == std::vector<double>{-7, 0.25, 3});
}

TEST_CASE("rules: laws find a rule that is wrong, and say where") {
    const auto broken = [](const DerivativeRule &rule) { return broken_rule_law(with_rule(log1pexp(f32), rule)).value_or("nothing"); };
    CHECK_THAT(broken({.backward = shared(log1pexp_backward(f32, 1.01))}), Catch::Contains("backward of its rule, log1pexp_backward"));
    CHECK_THAT(broken({.backward = shared(log1pexp_backward(f32, -1))}), Catch::Contains("by differences it is"));
    Builder v("wrong_jvp", f32);
    const Dim N = v.dim("N");
    const Tile x = v.input("x", {N}), t = v.input("x.tangent", {N});
    CHECK_THAT(broken({.jvp = shared(v.output("y.tangent", t * x).build())}), Catch::Contains("jvp of its rule, wrong_jvp"));
    Builder w("wrong_forward", f32);
    const Tile other = w.input("x", {w.dim("N")});
    CHECK_THAT(broken({.backward = shared(log1pexp_backward(f32)), .forward = shared(w.output("y", other + 1.0).build())}),
               Catch::Contains("forward of its rule, wrong_forward, gives"));
    // An input that the rule forgets counts as constant.
    Builder p("product", f32);
    const Dim M = p.dim("N");
    const Algorithm product = p.output("y", p.input("x", {M}) * p.input("z", {M})).build();
    Builder q("forgets", f32);
    const Dim K = q.dim("N");
    const Tile z = q.input("z", {K}), g = q.input("y.grad", {K});
    const Algorithm forgets = with_rule(product, {.backward = shared(q.output("x.grad", g * z).build())});
    CHECK(broken_rule_law(forgets));
    CHECK_THROWS_WITH(check_rule_laws(forgets), Catch::Contains("algorithm.rule-law") && Catch::Contains("differs on purpose"));
    // Differences of log(x - 8) are nowhere finite.
    Builder l("logarithm", f32);
    const Dim J = l.dim("N");
    const Algorithm logarithm = l.output("y", log(l.input("x", {J}) - 8.0)).build();
    Builder m("logarithm_backward", f32);
    const Dim I = m.dim("N");
    const Tile y = m.input("x", {I}), h = m.input("y.grad", {I});
    const DerivativeRule rule{.backward = shared(m.output("x.grad", h / (y - 8.0)).build())};
    CHECK_THAT(broken_rule_law(with_rule(logarithm, rule)).value_or("nothing"), Catch::Contains("State where its inputs lie"));
    Algorithm stated = logarithm;
    stated.stated_ranges["x"] = {10, 20};
    CHECK(!broken_rule_law(with_rule(stated, rule)));
}

TEST_CASE("rules: what is malformed is refused with what was expected") {
    const Algorithm f = log1pexp(f32);
    check_refused(f, {}, "jvp, backward, or both; got neither");
    check_refused(f, {.jvp = shared(log1pexp_jvp(f32)), .forward = shared(f)}, "got forward without it");
    const auto part = [&](const std::string &input, const std::string &dim, DType type, const std::string &output) {
        Builder b("part", f32);
        const Dim N = b.dim(dim);
        const Tile g = b.input(input, {N}, type);
        return shared(b.output(output, cast(DType::f32, g) * 2.0, DType::f32).build());
    };
    check_refused(f, {.backward = part("z.grad", "N", DType::f32, "x.grad")}, "has the input 'z.grad'; expected one of x, y, y.grad");
    check_refused(f, {.backward = part("y.grad", "N", DType::f32, "z.grad")}, "has the output 'z.grad'; expected one of x.grad");
    check_refused(f, {.backward = part("y.grad", "M", DType::f32, "x.grad")}, "has the dim 'M'; expected those of the algorithm, N");
    check_refused(f, {.backward = part("y.grad", "N", DType::bf16, "x.grad")}, "expected its input 'y.grad' to be f32[N]; got bf16[N]");
    check_refused(f, {.jvp = part("x.tangent", "N", DType::f32, "z.tangent")}, "has the output 'z.tangent'; expected one of y.tangent");
    check_refused(f, {.backward = part("y.grad", "N", DType::f32, "x.grad"), .forward = part("x", "N", DType::f32, "z")},
                  "does not give 'y'; it gives z");
    check_refused(f, {.backward = shared(log1pexp_backward(bf16))}, "weaker");
    Builder s("writer", f32);
    const Dim N = s.dim("N");
    const Tile state = s.state("s", {N});
    s.update("put", state, {s.index(N)}, state + 1.0);
    check_refused(s.output("y", state * 1.0).build(), {.backward = part("y.grad", "N", DType::f32, "s.grad")}, "it writes a state");
}

TEST_CASE("rules: documents keep them, and vmap maps them") {
    const Algorithm callee = with_rule(gate(f32), {.backward = shared(gate_backward(f32)), .forward = shared(gate_forward(f32))});
    const Algorithm read = algorithm_from_json(to_json(callee));
    REQUIRE(read.rule);
    CHECK(to_json(read) == to_json(callee));
    CHECK(to_json(vjp(read)) == to_json(vjp(callee)));
    CHECK_THAT(to_text(callee),
               Catch::Contains("derivative forward gate_forward, backward gate_backward") && Catch::Contains("algorithm gate_backward"));

    const Algorithm many = vmap(callee, symbolic_dim("B"), {"x"});
    INFO(to_text(vjp(many, {{"x", "w", "a"}})));
    std::mt19937 random(9);
    const Given given = random_given(many, {{"M", 3}, {"K", 2}, {"J", 2}, {"B", 3}}, random, {}, 2);
    const auto error = error_of_jvp(many, {{"x", "w", "a"}}, given, random);
    REQUIRE(error);
    CHECK(*error < 1e-6);
    CHECK(error_of_vjp(many, {{"x", "w", "a"}}, given, random) < 1e-12);
    CHECK_THAT(to_text(vjp(many, {{"x"}})), Catch::Contains("gate_backward"));
}

TEST_CASE("rules: parts may be written with other names of tensors") {
    Builder b("backward", f32);
    const Dim N = b.dim("N");
    const Tile x = b.input("x", {N}), g = b.input("y_grad", {N});
    const Algorithm written = b.output("result", g * (1.0 - 1.0 / (exp(x) + 1.0))).build();
    const Algorithm part = as_a_call(written, {{"y_grad", "y.grad"}, {"result", "x.grad"}});
    CHECK(part.outputs == std::vector<std::string>{"x.grad"});
    const Algorithm f = with_rule(log1pexp(f32), {.backward = shared(part)});
    CHECK(!broken_rule_law(f));
    const std::map<std::string, Array> given = {{"x", numbers({0, 100})}, {"y.grad", numbers({1, 2})}};
    CHECK(at(vjp(f), given, "x.grad") == std::vector<double>{0.5, 2});
}

TEST_CASE("rules: of what is stored narrow") {
    Builder f("half", bf16);
    const Dim N = f.dim("N");
    const Algorithm half = f.output("y", f.input("x", {N}) * 0.5).build();
    Builder b("half_backward", bf16);
    const Dim M = b.dim("N");
    const Algorithm backward = b.output("x.grad", b.input("y.grad", {M}) * 0.5).build();
    const Algorithm callee = with_rule(half, {.backward = shared(backward)});
    CHECK(!broken_rule_law(callee));
    Builder p("program", bf16);
    const Dim K = p.dim("N");
    const Tile x = p.input("x", {K});
    const Tile y = p.call("one", callee, {p.call("two", callee, {x})[0]})[0];
    const Algorithm program = p.output("z", y * y).build();
    const Array eight(DType::bf16, {2}, {8, -4});
    CHECK(evaluate(vjp(program), {{"x", eight}, {"z.grad", Array(DType::bf16, {2}, {1, 1})}}).at("x.grad").values() ==
          std::vector<double>{1, -0.5});
    CHECK(evaluate(jvp(program), {{"x", eight}, {"x.tangent", Array(DType::bf16, {2}, {1, 1})}}).at("z.tangent").values() ==
          std::vector<double>{1, -0.5});
}

}  // namespace tessera::test_derivative_rules

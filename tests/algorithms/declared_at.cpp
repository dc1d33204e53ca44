// Where what is declared stands: errors begin with the line, stages and tensors keep it, and nothing but messages has it.
#include <catch2/catch.hpp>

#include "algorithms/build/convolution.h"
#include "algorithms/build/epilogue.h"
#include "algorithms/build/fourier.h"
#include "algorithms/build/quantized.h"
#include "algorithms/build/random.h"
#include "algorithms/build/selection.h"
#include "algorithms/build/tile_functions.h"
#include "algorithms/build/weights.h"
#include "algorithms/functions/functions.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "algorithms/text/print.h"
#include "algorithms/transform/inline_calls.h"
#include "support/text/error.h"

namespace tessera::test_declared_at {

static std::string what(const std::function<void()> &call) {
    try {
        call();
    } catch (const UserError &error) { return error.what(); }
    return "accepted";
}

static std::string line(uint32_t number) { return "declared_at.cpp:" + std::to_string(number); }

struct Mistake {
    uint32_t line;
    std::function<void()> call;
};

TEST_CASE("declared_at: each mistake at a declaration begins with its line") {
    Builder f("f"), g("g");
    const Dim M = f.dim("M"), N = f.dim("N"), J = symbolic_dim("J"), two = f.dim("two", 2);
    const Tile x = f.input("x", {M, N}), w = f.input("w", {N, M}), n = f.input("n", {N}, DType::i32), other = g.input("x", {g.dim("M")});
    const Tile row = f.input("row", {N}), none, one = x / 2.0, flag = x < 0.0;
    const Monoid welford = welford_monoid(DType::f32), sum_f32 = sum_monoid(DType::f32);
    const std::vector<double> halves = {0.5, 1};
    const std::map<std::string, Expr> elsewhere = {{"H", 0}};
    const std::vector<Dim> both = {M, N};
    const Options activated = {{"activation", 1}};
    const Quantization wide = {.codes = DType::f64};
    const RandomStream stream{row, row};
    const Algorithm callee = [] {
        Builder c("callee");
        return c.output("y", c.input("x", {c.dim("K")}) * 2).build();
    }();
    const std::vector<Mistake> mistakes = {
        {__LINE__, [&] { f.dim("M", 3); }},
        {__LINE__, [&] { f.dim(fixed_dim("M", 3)); }},
        {__LINE__, [&] { two.value == 2 ? f.dim("two") : M; }},
        {__LINE__, [&] { f.dim_named("H"); }},
        {__LINE__, [&] { f.input("z", {fixed_dim("M", 3)}); }},
        {__LINE__, [&] { f.state("z", {fixed_dim("M", 3)}); }},
        {__LINE__, [&] { f.parameter("p", DType::i32, 1.5); }},
        {__LINE__, [&] { f.constant("t", {two}, halves, DType::i8); }},
        {__LINE__, [&] { f.index(fixed_dim("M", 3)); }},
        {__LINE__, [&] { f.scalar(DType::i8, 0.5); }},
        {__LINE__, [&] { f.tile(x.value(), {fixed_dim("M", 3)}); }},
        {__LINE__, [&] { f.fold(sum_f32, {x}, {"H"}); }},
        {__LINE__, [&] { f.scan(welford, x, N); }},
        {__LINE__, [&] { f.scan_parts(sum_f32, {x}, J); }},
        {__LINE__, [&] { f.scatter(welford, x, {n}, {N}); }},
        {__LINE__, [&] { f.scatter_parts(sum_f32, {x}, {}, {N}); }},
        {__LINE__, [&] { f.update("u", x, {}, x); }},
        {__LINE__, [&] { f.output_in_place(x * 2, x); }},
        {__LINE__, [&] { f.call("c", callee, {}); }},
        {__LINE__, [&] { f.repeat("c", callee, {"H"}, {x}); }},
        {__LINE__, [&] { f.output("y", none); }},
        {__LINE__, [&] { f.make_stage("y", none); }},
        {__LINE__, [&] { none.named("y"); }},
        {__LINE__, [&] { x.at(elsewhere, {}); }},
        {__LINE__, [&] { x + n; }},
        {__LINE__, [&] { x - other; }},
        {__LINE__, [&] { x *n; }},
        {__LINE__, [&] { n / 0.5; }},
        {__LINE__, [&] { 0.5 % n; }},
        {__LINE__, [&] { x < n; }},
        {__LINE__, [&] { x >= n; }},
        {__LINE__, [&] { x == n; }},
        {__LINE__, [&] { x != n; }},
        {__LINE__, [&] { (x < 0.0) && row * 2.0; }},
        {__LINE__, [&] { x ^ n; }},
        {__LINE__, [&] { x << n; }},
        {__LINE__, [&] { n >> 0.5; }},
        {__LINE__, [&] { min(x, n); }},
        {__LINE__, [&] { max(n, 0.5); }},
        {__LINE__, [&] { -flag; }},
        {__LINE__, [&] { fma(x, n, x); }},
        {__LINE__, [&] { select(x, other, x); }},
        {__LINE__, [&] { cast(DType::f64, x, Rounding::toward_zero); }},
        {__LINE__, [&] { bitcast(DType::f64, x); }},
        {__LINE__, [&] { exp(n); }},
        {__LINE__, [&] { silu(n); }},
        {__LINE__, [&] { pow(x, n); }},
        {__LINE__, [&] { atan2(x, n); }},
        {__LINE__, [&] { applied(*find_function("exp"), std::vector<Tile>{}); }},
        {__LINE__, [&] { transpose(row); }},
        {__LINE__, [&] { broadcast(x, {M}); }},
        {__LINE__, [&] { stack({x}, N); }},
        {__LINE__, [&] { rename(row, M, J); }},
        {__LINE__, [&] { dot(x, row, {M}); }},
        {__LINE__, [&] { sum(x, J); }},
        {__LINE__, [&] { product(x, J); }},
        {__LINE__, [&] { max(x, J); }},
        {__LINE__, [&] { mean(x, J); }},
        {__LINE__, [&] { softmax(x, J); }},
        {__LINE__, [&] { online_softmax(x, n, N, M); }},
        {__LINE__, [&] { mask_causal(n, M, N); }},
        {__LINE__, [&] { layernorm(x, x, x, J); }},
        {__LINE__, [&] { rmsnorm(x, x, J); }},
        {__LINE__, [&] { logsumexp(x, J); }},
        {__LINE__, [&] { with_epilogue(n, N, activated); }},
        {__LINE__, [&] { fft(x, N); }},
        {__LINE__, [&] { sorted(x, N); }},
        {__LINE__, [&] { uniform(f, stream, {M}); }},
        {__LINE__, [&] { quantized(f, "q", both, wide); }},
        {__LINE__, [&] { quantize(n, "q", wide); }},
    };
    for (const Mistake &mistake : mistakes) {
        const std::string words = what(mistake.call);
        INFO(mistake.line << ": " << words);
        CHECK(words.starts_with(line(mistake.line) + ": error["));
    }
}

TEST_CASE("declared_at: the words, and the fields that programs ask for") {
    Builder f("linear");
    const Dim M = f.dim("M"), K = f.dim("K"), J = f.dim("J"), N = f.dim("N");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {J, N});
    try {
        dot(x, w);
        FAIL("accepted");
    } catch (const UserError &error) {
        const uint32_t at = __LINE__ - 3;
        CHECK(error.what() == line(at) +
                                  ": error[shape.dot]: dot: x[M, K]'s last dim 'K' must be a dim of w[J, N]; name the dims to sum over, or "
                                  "rename one.");
        CHECK(error.id() == "shape.dot");
        CHECK(error.message() == "dot: x[M, K]'s last dim 'K' must be a dim of w[J, N]; name the dims to sum over, or rename one.");
        CHECK(error.span().file_name() == "declared_at.cpp");
        CHECK(error.span().line == at);
    }
    CHECK(!SpanScope::current());
}

TEST_CASE("declared_at: what verifying finds in a stage stands at the stage") {
    Builder f("gather");
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N});
    const uint32_t at = __LINE__ + 1;
    const Tile next = x.at({{"N", variable("N") + 1}}, {"M", "N"}).named("next");
    const std::string words = what([&] { f.output("y", next).build(); });
    CHECK(words.starts_with(line(at) + ": error[algorithm.bounds]: gather.next: "));
    try {
        f.build();
        FAIL("accepted");
    } catch (const UserError &error) { CHECK(error.stage() == "next"); }
}

TEST_CASE("declared_at: stages, tensors, dims and calls know their lines, through calls too") {
    Builder c("callee");
    const uint32_t at = __LINE__ + 1;
    const Dim K = c.dim("K");
    const Tile x = c.input("x", {K});
    const Tile e = exp(x).named("e");
    const Tile total = sum(exp(e), K);  // the operand is used once, so it stays in the fold
    const Algorithm callee = c.output("y", e / total.named("total")).build();
    CHECK(declared_at(callee, "K").text() == line(at));
    CHECK(declared_at(callee, "x").text() == line(at + 1));
    CHECK(declared_at(callee, "e").text() == line(at + 2));
    CHECK(declared_at(callee, "total").text() == line(at + 3));
    CHECK(declared_at(callee, "y").text() == line(at + 4));
    CHECK(!declared_at(callee, "z"));

    Builder f("caller");
    const Dim N = f.dim("N");
    const uint32_t called = __LINE__ + 1;
    const std::vector<Tile> results = f.call("soft", callee, {f.input("x", {N})});
    const Algorithm caller = f.output("y", results[0]).build();
    CHECK(declared_at(caller, "soft").text() == line(called));
    CHECK(declared_at(caller, "soft.total").text() == line(at + 3));
    CHECK(declared_at(inline_calls(caller), "soft.total").text() == line(at + 3));
}

TEST_CASE("declared_at: an operand that becomes a stage stands where it was written") {
    Builder f("gemv");
    const Dim M = f.dim("M"), N = f.dim("N"), K = f.dim("K");
    const Tile x = f.input("x", {M, K}), w = f.input("w", {K, N});
    const uint32_t at = __LINE__ + 1;
    const Tile activated = silu(x);
    const Algorithm a = f.output("y", dot(activated, w)).build();
    CHECK(declared_at(a, "dot_operand").text() == line(at));
}

TEST_CASE("declared_at: the line of another language counts whatever C++ says") {
    Builder f("f");
    const Dim M = f.dim("M");
    {
        const SpanScope python(Span("/home/me/linear.py", 9));
        const Tile x = f.input("x", {M});
        CHECK(x.span().text() == "linear.py:9");
        CHECK(what([&] { exp(cast(DType::i32, x)); }).starts_with("linear.py:9: error[functions.type]: "));
        f.output("y", x * 2);
    }
    CHECK(declared_at(f.build(), "y").text() == "linear.py:9");
}

TEST_CASE("declared_at: no text, JSON or hash has lines") {
    const auto declared = [](const Span &at) {
        const SpanScope scope(at);
        Builder f("f");
        return f.output("y", silu(f.input("x", {f.dim("M")}))).build();
    };
    const Algorithm a = declared(Span("one.py", 1)), b = declared(Span("two.py", 2));
    CHECK(to_text(a) == to_text(b));
    CHECK(to_json(a) == to_json(b));
    CHECK(semantic_hash(a) == semantic_hash(b));
    CHECK(surface_hash(a) == surface_hash(b));
    CHECK(to_json(a).dump().find(".py") == std::string::npos);
}

}  // namespace tessera::test_declared_at

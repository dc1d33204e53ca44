// What each word of a numerics policy does to an algorithm, and how far results then are from those in f64.
#include "algorithms/transform/licensed.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <random>

#include <nlohmann/json.hpp>

#include "algorithms/build/tile_functions.h"
#include "algorithms/evaluate/reference.h"
#include "algorithms/functions/functions.h"
#include "algorithms/library/library.h"
#include "algorithms/text/hash.h"
#include "algorithms/text/json.h"
#include "tests/algorithms/f32_blocks.h"
#include "tests/support/words.h"

namespace tessera::test_licensed {

using namespace tessera::test;

// The expression that the first stage of y = f(x, b) has, where x is (M, N) and b is (M).
static std::string expression(const std::string &policy, const std::function<Tile(const Tile &x, const Tile &b)> &f) {
    Builder builder("f", numerics_named(policy));
    const Dim M = builder.dim("M"), N = builder.dim("N");
    const Tile x = builder.input("x", {M, N}), b = builder.input("b", {M});
    const Algorithm a = builder.output("y", f(x, b)).build();
    return to_string(expressions_of(*a.stages().begin()).front());
}

TEST_CASE("a policy's words are in its name, its text and its documents, in one order") {
    const Numerics n = numerics_named("f32+functions+contraction");
    CHECK(n.name == "f32+contraction+functions");
    CHECK(n.licensed == std::set{Licence::contraction, Licence::functions});
    CHECK(text_of(n).ends_with("licensed contraction and functions"));
    CHECK(numerics_named("bf16+flushed").denormals == Denormals::flushed);
    CHECK(base_name(n.name) == "f32");
    CHECK(with_words(n, {}) == numerics_named("f32"));
    CHECK_THROWS_WITH(numerics_named("f32+functoins"), Catch::Contains("error[numerics.unknown-word]") &&
                                                           Catch::Contains("contraction, reassociation, reciprocals, functions, flushed") &&
                                                           Catch::Contains("Did you mean 'functions'?"));
    CHECK_THROWS_WITH(numerics_named("f23+functions"), Catch::Contains("error[numerics.unknown]: there is no numerics policy 'f23'"));
    Numerics liar = n;
    liar.licensed.erase(Licence::functions);
    CHECK_THROWS_WITH(check(liar), Catch::Contains("error[numerics.policy]") && Catch::Contains("in the order"));
    CHECK(weaker_in(n, numerics_named("f32")) == "licenses contraction, licenses functions");
    CHECK(weaker_in(numerics_named("f32"), n).empty());
    const Algorithm a = library::softmax(n);
    CHECK(algorithm_from_json(to_json(a)).numerics == n);
    CHECK(semantic_hash(algorithm_from_json(to_json(a))) == semantic_hash(a));
}

TEST_CASE("contraction: products that are added to, and sums of products") {
    const std::string policy = "f32+contraction";
    CHECK(expression(policy, [](Tile x, Tile b) { return x * x + b; }) == "fma(x[M, N], x[M, N], b[M])");
    CHECK(expression(policy, [](Tile x, Tile b) { return b - x * x; }) == "fma(neg(x[M, N]), x[M, N], b[M])");
    CHECK(expression(policy, [](Tile x, Tile b) { return x * x - b; }) == "fma(x[M, N], x[M, N], neg(b[M]))");
    CHECK(expression("f32", [](Tile x, Tile b) { return x * x + b; }) == "x[M, N]*x[M, N] + b[M]");
    Builder f("squares", numerics_named(policy));
    const Dim M = f.dim("M"), N = f.dim("N");
    const Tile x = f.input("x", {M, N});
    const Algorithm a = f.output("y", sum(x * x, N)).build();
    CHECK(monoid_of(*a.find_stage("y")).name == "dot");
}

TEST_CASE("reassociation: constants of a product, and factors that no term of a sum varies") {
    const std::string policy = "f32+reassociation";
    CHECK(expression(policy, [](Tile x, Tile) { return x * 3 * 5; }) == expression("f32", [](Tile x, Tile) { return x * 15; }));
    CHECK(expression(policy, [](Tile x, Tile) { return x * 1e-30 * 1e-30; }) ==
          expression("f32", [](Tile x, Tile) { return x * 1e-30 * 1e-30; }));  // a subnormal product would say less
    const auto product = [](const std::string &name, bool is_output) {
        Builder f("scaled", numerics_named(name));
        const Dim M = f.dim("M"), N = f.dim("N");
        const Tile x = f.input("x", {M, N}), scale = f.input("scale", {M});
        const Tile y = sum(x * scale, N).named("acc");
        if (is_output) return f.output("acc", y).build();
        return f.output("y", relu(y)).build();
    };
    const auto texts = [](const Algorithm &a) {
        std::vector<std::string> all;
        for (const Stage &s : a.stages())
            for (const Expr &e : expressions_of(s)) all.push_back(to_string(e));
        return join(all, "; ");
    };
    CHECK(texts(product(policy, false)) == "x[M, N]; relu(acc[M]*scale[M])");
    CHECK(texts(product("f32", false)) == "x[M, N]*scale[M]; relu(acc[M])");
    CHECK(texts(product(policy, true)) == texts(product("f32", true)));  // what is asked for is the sum itself
}

TEST_CASE("reciprocals: of constants, of what other points share, of square roots") {
    const std::string policy = "f32+reciprocals";
    CHECK(expression(policy, [](Tile x, Tile) { return x / 4; }) == expression("f32", [](Tile x, Tile) { return x * 0.25; }));
    CHECK(expression(policy, [](Tile x, Tile b) { return x / b; }) == expression("f32", [](Tile x, Tile b) { return x * (1 / b); }));
    CHECK(expression(policy, [](Tile x, Tile b) { return b / x; }) == expression("f32", [](Tile x, Tile b) { return b / x; }));
    CHECK(expression(policy, [](Tile x, Tile b) { return b / sqrt(x); }) == "b[M]*rsqrt_newton(x[M, N])");
    CHECK(expression(policy, [](Tile x, Tile) { return rsqrt(x); }) == "rsqrt_newton(x[M, N])");
    CHECK(expression("f64+reciprocals", [](Tile x, Tile) { return rsqrt(x); }) == "rsqrt(x[M, N])");
}

TEST_CASE("functions: those of f32, in monoids too") {
    CHECK(expression("f32+functions", [](Tile x, Tile) { return exp(x) + gelu(x); }) == "exp12(x[M, N]) + gelu12(x[M, N])");
    CHECK(expression("f32+functions", [](Tile x, Tile) { return rsqrt(x); }) == "rsqrt(x[M, N])");
    CHECK(expression("f64+functions", [](Tile x, Tile) { return exp(x); }) == "exp(x[M, N])");
    const Algorithm a = library::attention(numerics_named("f32+functions"));
    bool whole = false, narrow = false;
    for (const Stage &s : a.stages())
        if (is_fold(s))
            map_expressions(monoid_of(s), [&](const Expr &e) {
                walk(e, [&](const Expr &n) {
                    if (n.kind() == ExprKind::function) (n->function->name.ends_with("12") ? narrow : whole) = true;
                });
                return e;
            });
    CHECK(narrow);
    CHECK_FALSE(whole);
}

TEST_CASE("a policy without words changes nothing") {
    for (const std::string name : {"f32", "bf16", "training"}) {
        Algorithm a = library::attention(numerics_named(name));
        CHECK(to_json(with_licences(a)) == to_json(a));
    }
}

struct Bound {
    const char *name;
    double (*exact)(double);
    double relative, from, to;
    double absolute = 0;  // of |x|
};
static double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
static double gelu_tanh_of(double x) { return x * sigmoid_of(2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)); }

TEST_CASE("functions of fewer bits err by what they state, over a sample of all f32") {
    const double inf = INFINITY, bits12 = 0x1p-12;
    const Bound bounds[] = {
        {"exp12", [](double x) { return std::exp(x); }, bits12, -86.98, 88.72},
        {"exp_nonpositive12", [](double x) { return std::exp(x); }, bits12, -86.98, 0},
        {"log12", [](double x) { return std::log(x); }, bits12, 0, inf},
        {"tanh12", [](double x) { return std::tanh(x); }, bits12, -inf, inf},
        {"erf12", [](double x) { return std::erf(x); }, bits12, -inf, inf},
        {"sigmoid12", sigmoid_of, bits12, -86, inf},
        {"silu12", [](double x) { return x * sigmoid_of(x); }, bits12, -80, inf},
        {"gelu_tanh12", gelu_tanh_of, bits12, -9.5, inf},
        {"gelu12", [](double x) { return x * std::erfc(-x * std::sqrt(0.5)) / 2; }, 0, -inf, inf, 0x1p-13},
        {"rsqrt_newton", [](double x) { return 1 / std::sqrt(x); }, 0x1p-23, 0, inf},
    };
    for (const Bound &b : bounds) {
        const FunctionRef f = *find_function(b.name);
        F32Blocks blocks(applied(f, {input(0, DType::f32)}));
        double worst = 0, worst_in_ulp = 0, at = 0;
        std::vector<float> x(F32Blocks::lanes);
        std::mt19937 random(12);
        for (int block = 0; block < 4000; block++) {
            for (float &v : x) v = std::bit_cast<float>(static_cast<uint32_t>(random()));
            const float *y = blocks.run(x.data());
            for (size_t i = 0; i < x.size(); i++) {
                if (!(x[i] >= b.from && x[i] <= b.to) || std::isinf(x[i])) continue;
                const double exact = b.exact(x[i]);
                if (!std::isfinite(static_cast<float>(exact)) || std::fabs(exact) < 0x1p-125) continue;
                const double error = std::fabs(y[i] - exact), size = b.absolute > 0 ? std::fabs(x[i]) : std::fabs(exact);
                if (error / size > worst) worst = error / size, at = x[i];
                const double ulp = std::ldexp(1, std::ilogb(exact) - 23);
                if (error > f->facts.absolute_f32) worst_in_ulp = std::max(worst_in_ulp, error / ulp);
            }
        }
        INFO(b.name << ": 2^" << std::log2(worst) << " at " << at);
        CHECK(worst <= (b.absolute > 0 ? b.absolute : b.relative));
        CHECK(worst_in_ulp <= f->facts.ulp_f32);
        CHECK(worst > 0);
        const auto special = [&](float v) {
            x.assign(x.size(), v);
            return blocks.run(x.data())[0];
        };
        CHECK(std::isnan(special(NAN)));
        const double far = b.exact(-inf);
        if (std::isnan(far) && b.from < 0) CHECK(std::fabs(special(-INFINITY)) < 1e-35);  // a product with 0
        else if (std::isnan(far)) CHECK(std::isnan(special(-INFINITY)));
        else CHECK(special(-INFINITY) == Approx(far).margin(1e-35));
        if (b.to > 0) CHECK(special(INFINITY) == (Approx(b.exact(inf)).epsilon(bits12)));
    }
}

// What is licensed changes results by what rounding may, and by what functions state: never more than 2^-10 of the largest.
TEST_CASE("kernels of the library in every word are near their results in f64") {
    for (const std::string &word : numerics_words())
        for (const auto &make : {library::softmax, library::layernorm, library::attention, library::rmsnorm}) {
            const Algorithm a = make(numerics_named("f32+" + word)), plain = make(numerics_named("f64"));
            std::mt19937 random(3);
            std::normal_distribution<double> normal;
            std::map<std::string, Array> narrow, wide;
            for (const Tensor &t : a.tensors) {
                std::vector<int64_t> shape(t.dims.size(), 9);
                int64_t n = 1;
                for (int64_t s : shape) n *= s;
                std::vector<double> values;
                for (int64_t i = 0; i < n; i++) values.push_back(static_cast<float>(normal(random)));
                narrow.emplace(t.name, Array(DType::f32, shape, values)),
                    wide.emplace(t.name, Array(plain.find_tensor(t.name)->dtype, shape, values));
            }
            const auto parameters_of = [](const Algorithm &of) {
                std::map<std::string, Scalar> all;
                for (const Parameter &p : of.parameters) all[p.name] = Scalar::of_real(p.dtype, 0.125);
                return all;
            };
            const auto got = evaluate(a, narrow, parameters_of(a)), want = evaluate(plain, wide, parameters_of(plain));
            for (const std::string &output : a.outputs) {
                const std::vector<double> g = got.at(output).values(), w = want.at(output).values();
                double largest = 0, error = 0;
                for (size_t i = 0; i < g.size(); i++)
                    largest = std::max(largest, std::fabs(w[i])), error = std::max(error, std::fabs(g[i] - w[i]));
                INFO(a.name << " in " << a.numerics.name << ": " << error / largest);
                CHECK(error <= largest * (word == "functions" ? 0x1p-10 : 0x1p-18));
            }
        }
}

}  // namespace tessera::test_licensed

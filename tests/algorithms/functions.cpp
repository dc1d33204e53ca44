// The elementary functions against libm one precision up: a strided sample of every f32 and all neighbourhoods of
// special values here, all 2^32 of them under [.exhaustive], random points in f64, and the special values by name.
#include "algorithms/functions/functions.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <thread>

#include "support/text/error.h"
#include "tests/algorithms/f32_blocks.h"

namespace tessera::test_functions {

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr double all = -std::numeric_limits<double>::infinity();

using Function = Expr (*)(Expr);

struct Case {
    const char *name;
    Function build;
    long double (*reference)(long double);
    double (*reference_f64)(double);
    double ulps;        // largest error, in units in the last place of the exact result, in f32
    double from = all;  // where that holds; below, the absolute error is at most:
    double absolute = 0;
    double ulps_f64 = 2.1;
    double from_f64 = all;
    double absolute_f64 = 0;
};

template <typename T>
T linear(T x) {
    return 2 * std::sqrt(T(2) / std::acos(T(-1))) * x * (1 + T(0.044715L) * x * x);
}
template <typename T>
T sigmoid_of(T x) {
    return 1 / (1 + std::exp(-x));
}
template <typename T>
T softplus_of(T x) {
    return std::fmax(x, T(0)) + std::log1p(std::exp(-std::fabs(x)));
}
// sin and cos give NaN beyond their range.
template <typename T>
T within(T limit, T x, T value) {
    return std::fabs(x) <= limit ? value : std::numeric_limits<T>::quiet_NaN();
}

#define BOTH(expression) [](long double x) -> long double { return expression; }, [](double x) -> double { return expression; }

const Case cases[] = {
    {"exp", exp, BOTH(std::exp(x)), 1},
    {"expm1", expm1, BOTH(std::expm1(x)), 1.5},
    {"log", log, BOTH(std::log(x)), 1},
    {"log1p", log1p, BOTH(std::log1p(x)), 1.1},
    {"sin", sin, [](long double x) { return within(0x1p45L, x, std::sin(x)); }, [](double x) { return within(0x1p20, x, std::sin(x)); }, 1},
    {"cos", cos, [](long double x) { return within(0x1p45L, x, std::cos(x)); }, [](double x) { return within(0x1p20, x, std::cos(x)); }, 1},
    {"atan", atan, BOTH(std::atan(x)), 1.3},
    {"erf", erf, BOTH(std::erf(x)), 1.5},
    {"erfc", erfc, BOTH(std::erfc(x)), 1.5},
    {"tanh", tanh, BOTH(std::tanh(x)), 1.5},
    {"sigmoid", sigmoid, BOTH(sigmoid_of(x)), 2},
    {"rsqrt", rsqrt, BOTH(1 / std::sqrt(x)), 1},
    {"relu", relu, BOTH(x < 0 ? 0 : x), 0},
    {"softplus", softplus, BOTH(softplus_of(x)), 1.2},
    {"gelu", gelu, BOTH(x *std::erfc(-x * 0.70710678118654752440L) / 2), 2.5, -4.5, 2e-8, 5.5, -37.5, 1e-306},
    {"gelu_tanh", gelu_tanh, BOTH(x *sigmoid_of(linear(x))), 2.5},
    {"silu", silu, BOTH(x *sigmoid_of(x)), 2.5},
};

struct Worst {
    double ulps = 0, absolute = 0;
    float at = 0, absolute_at = 0;
    uint64_t wrong_nan = 0;

    void merge(const Worst &o) {
        if (o.ulps > ulps) ulps = o.ulps, at = o.at;
        if (o.absolute > absolute) absolute = o.absolute, absolute_at = o.absolute_at;
        wrong_nan += o.wrong_nan;
    }
    void add(const Case &c, float x, float got) {
        double want = c.reference_f64(x);
        if (std::isnan(want) || std::isnan(got)) {
            wrong_nan += std::isnan(want) != std::isnan(got);
            return;
        }
        // Overflow is judged as if the next binade were there.
        double limit = 0x1p128;
        double g = std::fmax(-limit, std::fmin(limit, got)), w = std::fmax(-limit, std::fmin(limit, want));
        double error = std::fabs(g - w);
        if (x < c.from) {
            if (error > absolute) absolute = error, absolute_at = x;
            return;
        }
        int e = static_cast<int>(std::bit_cast<uint64_t>(w) >> 52 & 2047) - 1023;
        error *= std::bit_cast<double>(static_cast<uint64_t>(1023 + 23 - std::max(e, -126)) << 52);
        if (error > ulps) ulps = error, at = x;
    }
};

// Every f32 whose bits are first, first + stride, …
Worst sweep(const Case &c, const std::vector<uint32_t> &first, uint64_t count, uint64_t stride) {
    F32Blocks tape(c.build(input(0, DType::f32)));
    unsigned threads = std::max(1u, std::thread::hardware_concurrency());
    std::vector<Worst> found(threads);
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; t++)
        pool.emplace_back([&, t] {
            F32Blocks mine = tape;
            float x[F32Blocks::lanes];
            for (uint32_t start : first)
                for (uint64_t i = t * F32Blocks::lanes; i < count; i += threads * F32Blocks::lanes) {
                    for (int lane = 0; lane < F32Blocks::lanes; lane++)
                        x[lane] = std::bit_cast<float>(static_cast<uint32_t>(start + (i + lane) * stride));
                    const float *y = mine.run(x);
                    for (int lane = 0; lane < F32Blocks::lanes; lane++)
                        if (!std::isinf(x[lane])) found[t].add(c, x[lane], y[lane]);
                }
        });
    for (std::thread &thread : pool) thread.join();
    Worst worst;
    for (const Worst &w : found) worst.merge(w);
    return worst;
}

void check(const Case &c, const Worst &worst) {
    INFO(c.name << ": " << worst.ulps << " ULP at " << worst.at << ", below " << c.from << " absolute " << worst.absolute << " at "
                << worst.absolute_at);
    CHECK(worst.wrong_nan == 0);
    CHECK(worst.ulps <= c.ulps);
    CHECK(worst.absolute <= c.absolute);
}

float at(Function function, float x) {
    return static_cast<float>(evaluate(function(input(0, DType::f32)), Scalar::of_real(DType::f32, x)).real);
}
double at64(Function function, double x) { return evaluate(function(input(0, DType::f64)), Scalar::of_real(DType::f64, x)).real; }

}  // namespace

TEST_CASE("functions: a sample of f32 is within the stated error") {
    for (const Case &c : cases) check(c, sweep(c, {0}, (uint64_t{1} << 32) / 257, 257));
}

TEST_CASE("functions: f32 around the special values is within the stated error") {
    std::vector<uint32_t> starts;
    for (float centre :
         {0.0f,  0x1p-126f, 0x1p-24f, 0x1p20f,     1.57079633f, 0.785398163f, 3.14159265f, 0.25f,   0.34657359f, 0.5f,  0.625f, 0.70710678f,
          0.75f, 0.84f,     1.0f,     1.41421356f, 3.9f,        5.0f,         9.0f,        10.054f, 10.09f,      10.5f, 13.0f,  17.3f,
          20.0f, 86.6f,     87.3f,    88.72f,      88.7228f,    103.97f,      128.0f,      0x1p24f, 0x1p127f,    inf})
        for (uint32_t sign : {0u, 0x80000000u}) starts.push_back((std::bit_cast<uint32_t>(centre) | sign) - 2048);
    for (const Case &c : cases) check(c, sweep(c, starts, 4096, 1));
}

// Minutes for each function; -c <name> runs one.
TEST_CASE("functions: every f32 is within the stated error", "[.exhaustive]") {
    for (const Case &c : cases) DYNAMIC_SECTION(c.name) {
            Worst worst = sweep(c, {0}, uint64_t{1} << 32, 1);
            printf("%-10s %.4f ULP at %a", c.name, worst.ulps, worst.at);
            if (c.absolute > 0) printf(", and %.3g absolute at %g (below %g)", worst.absolute, worst.absolute_at, c.from);
            printf("\n");
            fflush(stdout);
            check(c, worst);
        }
}

TEST_CASE("functions: f64 at random points is within the stated error") {
    std::mt19937_64 random(1);
    auto check_at = [](const Case &c, const Expr &e, double x) {
        double got = evaluate(e, Scalar::of_real(DType::f64, x)).real;
        long double want = c.reference(x);
        if (std::isnan(want)) return std::isnan(got) ? 0.0 : inf;
        if (std::isinf(static_cast<double>(want))) return std::isinf(got) ? 0.0 : inf;
        if (x < c.from_f64) return std::fabs(static_cast<double>(got - want)) <= c.absolute_f64 ? 0.0 : inf;
        int exponent = want == 0 ? -1022 : std::max(std::ilogb(want), -1022);
        return static_cast<double>(std::fabs(std::ldexp(got - want, 52 - exponent)));
    };
    for (const Case &c : cases) {
        const Expr e = expand_functions(c.build(input(0, DType::f64)));
        double worst = 0, at = 0;
        auto visit = [&](double x) {
            if (double error = check_at(c, e, x); !(error <= worst)) worst = error, at = x;
        };
        for (double scale : {1e-3, 1.0, 3.0, 10.0, 40.0, 800.0})
            for (int i = 0; i < 1500; i++) visit(std::uniform_real_distribution(-scale, scale)(random));
        for (int i = 0; i < 1500; i++)
            if (double x = std::bit_cast<double>(random()); std::isfinite(x)) visit(x);
        INFO(c.name << ": " << worst << " ULP at " << at);
        CHECK(worst <= c.ulps_f64);
    }
}

TEST_CASE("functions: special values") {
    constexpr float tiny = 0x1p-149f, largest = std::numeric_limits<float>::max();
    for (const Case &c : cases) {
        INFO(c.name);
        CHECK(std::isnan(at(c.build, nan_value)));
        CHECK(std::isnan(at(c.build, -nan_value)));
        CHECK(std::isnan(at64(c.build, nan_value)));
    }
    auto same = [](double a, double b) { return Scalar::of_real(DType::f64, a) == Scalar::of_real(DType::f64, b); };
    auto both = [&](Function function, double x, double want) {
        double single = at(function, static_cast<float>(x)), twice = at64(function, x);
        for (const Case &c : cases)
            if (c.build == function) {
                INFO(c.name << "(" << x << ") is " << single << " in f32, " << twice << " in f64, not " << want);
                CHECK(same(single, want));
                CHECK(same(twice, want));
            }
    };
    both(exp, inf, inf), both(exp, -inf, 0), both(exp, 0, 1), both(exp, -0.0, 1);
    CHECK(at(exp, largest) == inf);
    CHECK(at(exp, -largest) == 0);
    CHECK(at(exp, -103.9f) == tiny);
    CHECK(at(exp, -104.0f) == 0);
    CHECK(at64(exp, -745.1) == std::numeric_limits<double>::denorm_min());
    CHECK(at64(exp, -745.2) == 0);
    both(log, inf, inf), both(log, 0, -inf), both(log, -0.0, -inf), both(log, 1, 0);
    both(log, -1, NAN), both(log, -inf, NAN);
    CHECK(at(log, tiny) == -103.278929903431851f);
    CHECK(std::isnan(at(log, -tiny)));
    both(expm1, inf, inf), both(expm1, -inf, -1), both(expm1, 0, 0), both(expm1, -0.0, -0.0);
    CHECK(at(expm1, tiny) == tiny);
    CHECK(at(expm1, -tiny) == -tiny);
    CHECK(at(expm1, largest) == inf);
    CHECK(at64(expm1, -1e-320) == -1e-320);
    both(log1p, inf, inf), both(log1p, -1, -inf), both(log1p, 0, 0), both(log1p, -0.0, -0.0);
    both(log1p, -1.5, NAN), both(log1p, -inf, NAN);
    CHECK(at(log1p, tiny) == tiny);
    CHECK(at(log1p, -tiny) == -tiny);
    CHECK(at64(log1p, 1e308) == std::log1p(1e308));
    both(erfc, inf, 0), both(erfc, -inf, 2), both(erfc, 0, 1), both(erfc, -0.0, 1);
    CHECK(at(erfc, 10.05f) == tiny);
    CHECK(at(erfc, 10.1f) == 0);
    CHECK(at64(erfc, 27.3) == 0);
    both(softplus, inf, inf), both(softplus, -inf, 0);
    CHECK(at(softplus, largest) == largest);
    CHECK(at(softplus, -103.9f) == tiny);
    CHECK(at(softplus, -104.0f) == 0);
    both(sin, 0, 0), both(sin, -0.0, -0.0), both(sin, inf, NAN), both(sin, -inf, NAN);
    CHECK(at(sin, tiny) == tiny);
    CHECK(std::isnan(at(sin, 0x1.000002p20f)));
    CHECK(std::isnan(at64(sin, 0x1.0000001p45)));
    CHECK(at64(sin, 0x1p45) == std::sin(0x1p45));
    both(cos, 0, 1), both(cos, -0.0, 1), both(cos, inf, NAN), both(cos, -inf, NAN);
    CHECK(std::isnan(at(cos, -largest)));
    both(atan, 0, 0), both(atan, -0.0, -0.0);
    CHECK(at(atan, tiny) == tiny);
    CHECK(at(atan, inf) == std::atan(inf));
    CHECK(at64(atan, -inf) == std::atan(-HUGE_VAL));
    both(erf, inf, 1), both(erf, -inf, -1), both(erf, 0, 0), both(erf, -0.0, -0.0);
    both(tanh, inf, 1), both(tanh, -inf, -1), both(tanh, 0, 0), both(tanh, -0.0, -0.0);
    CHECK(at(tanh, tiny) == tiny);
    CHECK(at(tanh, -tiny) == -tiny);
    both(sigmoid, inf, 1), both(sigmoid, -inf, 0), both(sigmoid, 0, 0.5), both(sigmoid, -0.0, 0.5);
    both(rsqrt, inf, 0), both(rsqrt, 0, inf), both(rsqrt, -0.0, -inf), both(rsqrt, -1, NAN), both(rsqrt, -inf, NAN);
    both(rsqrt, 0.25, 2);
    CHECK(std::isnan(at(rsqrt, -largest)));
    both(relu, inf, inf), both(relu, -inf, 0), both(relu, 0, 0), both(relu, -0.0, -0.0), both(relu, -3, 0);
    both(gelu, inf, inf), both(gelu, -inf, 0), both(gelu, 0, 0), both(gelu, -0.0, -0.0);
    both(gelu_tanh, inf, inf), both(gelu_tanh, -inf, -0.0), both(gelu_tanh, 0, 0), both(gelu_tanh, -0.0, -0.0);
    both(silu, inf, inf), both(silu, -inf, -0.0), both(silu, 0, 0), both(silu, -0.0, -0.0);
    for (Function function : std::initializer_list<Function>{relu, gelu, gelu_tanh, silu}) {
        both(function, 100, 100);
        CHECK(at(function, largest) == largest);
        CHECK(at64(function, 1e308) == 1e308);
    }
}

TEST_CASE("functions: erf and tanh are odd, and stay within 1") {
    std::mt19937 random(2);
    for (Function function : std::initializer_list<Function>{erf, tanh})
        for (int i = 0; i < 2000; i++) {
            float x = std::uniform_real_distribution(-12.0f, 12.0f)(random);
            float y = at(function, x);
            CHECK(y == -at(function, -x));
            CHECK(std::fabs(y) <= 1);
        }
}

// The sweeps above trust the block evaluator to be the definition; a disagreement would void them.
TEST_CASE("functions: blocks of f32 give the bits of the definition") {
    std::mt19937 random(3);
    for (const Case &c : cases) {
        Expr e = c.build(input(0, DType::f32));
        F32Blocks blocks(e);
        float x[F32Blocks::lanes];
        for (float &v : x) v = std::bit_cast<float>(static_cast<uint32_t>(random()));
        for (int i = 0; i < F32Blocks::lanes / 2; i++) x[i] = std::uniform_real_distribution(-20.0f, 20.0f)(random);
        const float *y = blocks.run(x);
        for (int i = 0; i < F32Blocks::lanes; i++) {
            INFO(c.name << " at " << x[i]);
            CHECK(Scalar::of_real(DType::f32, y[i]) == evaluate(e, Scalar::of_real(DType::f32, x[i])));
        }
    }
}

TEST_CASE("functions: exp_nonpositive has exp's bits down to 2^-126.5, and gives 0 below") {
    std::mt19937 random(4);
    F32Blocks whole(exp(input(0, DType::f32))), flushed(exp_nonpositive(input(0, DType::f32)));
    constexpr float flush = -87.68311f;  // -126.5 log(2)
    float x[F32Blocks::lanes];
    for (int block = 0; block < 4000; block++) {
        for (float &v : x) v = -std::bit_cast<float>(static_cast<uint32_t>(random() & 0x7fffffff));
        for (int i = 0; i < F32Blocks::lanes / 2; i++) x[i] = std::uniform_real_distribution(-90.0f, 0.0f)(random);
        x[0] = -0.0f, x[1] = flush * 1.000001f, x[2] = flush * 0.999999f, x[3] = -inf, x[4] = nan_value;
        std::vector<float> want(whole.run(x), whole.run(x) + F32Blocks::lanes);
        const float *got = flushed.run(x);
        for (int i = 0; i < F32Blocks::lanes; i++) {
            if (std::fabs(x[i] - flush) < 1e-5f) continue;
            INFO("exp_nonpositive(" << x[i] << ")");
            REQUIRE(Scalar::of_real(DType::f32, got[i]) == Scalar::of_real(DType::f32, x[i] < flush ? 0 : want[i]));
        }
    }
    CHECK(at64(exp_nonpositive, -708) == at64(exp, -708));
    CHECK(at64(exp_nonpositive, -709) == 0);
    CHECK(at64(exp_nonpositive, -inf) == 0);
    CHECK(at64(exp_nonpositive, 0) == 1);
}

// What a vector of values costs. A rise here is paid by every softmax.
TEST_CASE("functions: exp takes 18 operations, exp_nonpositive 13") {
    CHECK(operations_of(**find_function("exp"), DType::f32) == 18);
    CHECK(operations_of(**find_function("exp_nonpositive"), DType::f32) == 13);
}

TEST_CASE("functions: a type without arithmetic of its own is refused") {
    CHECK_THROWS_WITH(exp(input(0, DType::bf16)),
                      "error[functions.type]: exp takes f32 or f64, got bf16; cast the operand to f32 or f64 first.");
    CHECK_THROWS_WITH(sigmoid(input(0, DType::i32)),
                      "error[functions.type]: sigmoid takes f32 or f64, got i32; cast the operand to f32 or f64 first.");
    for (const Case &c : cases) CHECK_THROWS_AS(c.build(input(0, DType::index)), UserError);
}

}  // namespace tessera::test_functions
